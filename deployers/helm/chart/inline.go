// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Inline returns a Source for charts that the configuration itself contains, in the field chart.archive.raw.
func Inline() Source { return inline{} }

type inline struct{}

// Resolve computes the digest of the archive.
func (s inline) Resolve(_ context.Context, r Request) (Identity, error) {
	data, err := decodeInline(r)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Digest: DigestOf(data), Reference: "inline archive"}, nil
}

// Fetch decodes the archive.
func (s inline) Fetch(_ context.Context, r Request, id Identity) (*Archive, error) {
	data, err := decodeInline(r)
	if err != nil {
		return nil, err
	}
	return &Archive{Identity: id, Data: data}, nil
}

// decodeInline decodes the field chart.archive.raw. It accepts line breaks, as they occur in YAML block scalars.
func decodeInline(r Request) ([]byte, error) {
	if r.Chart.Archive == nil || r.Chart.Archive.Raw == "" {
		return nil, newError("archive.raw", "required")
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.Chart.Archive.Raw))
	if err != nil {
		return nil, newError("archive.raw", "must be a chart archive (.tgz) in base64")
	}
	return data, nil
}

// DigestOf returns the digest of an archive in the form of Identity.Digest.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

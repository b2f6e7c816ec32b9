// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

const (
	// maxRecord is the maximum size of an encoded record. A Secret may have 1 MiB.
	maxRecord = 1<<20 - 1024
	// maxDecoded is the maximum size of a decoded record, and maxElements the maximum number of its fields and list
	// elements. A target may return a small record that needs very much memory when it is decoded.
	maxDecoded, maxElements = 32 << 20, 500_000
)

// decoding is held while a record is decoded, so that the records of many targets do not need memory at the same time.
var decoding sync.Mutex

// encode encodes a record in Helm's format. It returns an *Error with ReasonRecord if the record is too large.
func (r *Record) encode() ([]byte, error) {
	raw, err := json.Marshal(r.release)
	if err != nil {
		return nil, newError(ReasonRecord, "the record of release %s cannot be encoded", r.release.Name)
	}
	if err := checkSize(raw); err != nil {
		return nil, newError(ReasonRecord, "the record of release %s %v", r.release.Name, err)
	}
	var out bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	_, _ = writer.Write(raw)                                     // a buffer returns no errors
	_ = writer.Close()
	encoded := base64.StdEncoding.AppendEncode(nil, out.Bytes())
	if len(encoded) > maxRecord {
		return nil, newError(ReasonRecord, "the record of release %s has %d bytes, more than the %d that fit into a Secret; the largest files of the chart are %s",
			r.release.Name, len(encoded), maxRecord, largestFiles(r.release.Chart))
	}
	return encoded, nil
}

// Check returns an *Error if the record does not fit into a Secret.
func (r *Record) Check() error {
	_, err := r.encode()
	return err
}

// largestFiles names the largest files of a chart.
func largestFiles(c *chartv2.Chart) string {
	files := slices.Concat(c.Files, c.Templates)
	slices.SortFunc(files, func(a, b *common.File) int { return len(b.Data) - len(a.Data) })
	var names []string
	for _, file := range files[:min(len(files), 3)] {
		names = append(names, fmt.Sprintf("%s (%d bytes)", file.Name, len(file.Data)))
	}
	return strings.Join(names, ", ")
}

// checkSize returns an error if a decoded record is too large, or contains too many elements.
func checkSize(raw []byte) error {
	if len(raw) > maxDecoded {
		return fmt.Errorf("has more than %d bytes after decompression", maxDecoded)
	}
	elements, quoted, escaped := 0, false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			elements++
		}
	}
	if elements > maxElements {
		return fmt.Errorf("has more than %d fields", maxElements)
	}
	return nil
}

// decode decodes a record in Helm's format.
func decode(data []byte) (*releasev1.Release, error) {
	decoding.Lock()
	defer decoding.Unlock()
	raw, err := decompress(data)
	if err != nil {
		return nil, err
	}
	if err := checkSize(raw); err != nil {
		return nil, err
	}
	rel := &releasev1.Release{}
	if err := json.Unmarshal(raw, rel); err != nil {
		return nil, errors.New("is not JSON")
	}
	if rel.Info == nil || rel.Chart == nil || rel.Chart.Metadata == nil || slices.Contains(rel.Hooks, nil) ||
		slices.Contains(rel.Chart.Files, nil) || slices.Contains(rel.Chart.Templates, nil) {
		return nil, errors.New("is incomplete")
	}
	return rel, nil
}

// decompress returns the JSON of a record, and one byte more than maxDecoded at most.
func decompress(data []byte) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, errors.New("is not base64")
	}
	if !bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 0x08}) {
		return raw, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("is not a gzip file")
	}
	if raw, err = io.ReadAll(io.LimitReader(reader, maxDecoded+1)); err != nil {
		return nil, errors.New("is not a gzip file")
	}
	return raw, nil
}

// sortedDocuments splits a manifest into its documents.
func sortedDocuments(manifest string) []string {
	texts := releaseutil.SplitManifests(manifest)
	keys := slices.Collect(maps.Keys(texts))
	slices.SortFunc(keys, func(a, b string) int {
		if releaseutil.BySplitManifestsOrder([]string{a, b}).Less(0, 1) {
			return -1
		}
		return 1
	})
	out := make([]string, 0, len(keys))
	for _, key := range keys {
		out = append(out, texts[key])
	}
	return out
}

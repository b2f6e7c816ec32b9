// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"sigs.k8s.io/yaml"
)

// signedMetadata is the first part of a provenance file: the content of Chart.yaml.
type signedMetadata struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// tag returns the tag for the version in a registry.
func (m signedMetadata) tag() string { return strings.ReplaceAll(m.Version, "+", "_") }

// signedSums is the second part of a provenance file.
type signedSums struct {
	Files map[string]string `json:"files"` // digests, by the names of archives
}

// verify checks that a key of the keyring has signed a provenance file with the digest of the archive.
func verify(ctx context.Context, r Request, field string, archive *Archive) error {
	keyring, err := readKeyring(ctx, r)
	if err != nil {
		return credentialError(field, fmt.Errorf("keyring: %w", err))
	}
	if len(archive.Provenance) == 0 {
		return newError(field, "%s: the chart has no provenance file, but a keyring is configured", archive.Reference)
	}
	block, _ := clearsign.Decode(archive.Provenance)
	if block == nil {
		return newError(field, "%s: the provenance file contains no signature", archive.Reference)
	}
	if _, err := block.VerifySignature(keyring, nil); err != nil {
		return newError(field, "%s: the signature of the provenance file is not valid: %s", archive.Reference, oneLine(err.Error()))
	}
	metadata, rest, found := bytes.Cut(bytes.ReplaceAll(block.Plaintext, []byte("\r\n"), []byte("\n")), []byte("\n...\n"))
	var signed signedMetadata
	var sums signedSums
	if !found || yaml.Unmarshal(metadata, &signed) != nil || yaml.Unmarshal(rest, &sums) != nil {
		return newError(field, "%s: the provenance file does not describe a chart", archive.Reference)
	}
	if sums.Files[fmt.Sprintf("%s-%s.tgz", signed.Name, signed.Version)] != archive.Digest {
		return newError(field, "%s: the provenance file was signed for another archive", archive.Reference)
	}
	return checkSigned(r, field, signed)
}

// checkSigned checks that a signed chart is the requested one, so that a server cannot answer with another signed chart.
func checkSigned(r Request, field string, signed signedMetadata) error {
	want := signedMetadata{}
	switch {
	case r.Chart.HelmChartRepo != nil:
		want.Name = r.Chart.HelmChartRepo.HelmChartName
		selected, err := newSelection(want.Name, r.Chart.HelmChartRepo.HelmChartVersion)
		if err != nil {
			return newError(field+".helmChartVersion", "%w", err)
		}
		if selected.add(indexEntry{Name: signed.Name, Version: signed.Version}); selected.best != nil {
			want.Version = signed.Version
		}
	case r.Chart.Ref != "":
		ref, err := parseReference(field, r.Chart.Ref)
		if err != nil {
			return err
		}
		want = signedMetadata{Name: path.Base(ref.Repository), Version: signed.Version}
		if tags := []string{"", signed.tag()}; !slices.Contains(tags, ref.tag) {
			want.Version = ref.tag
		}
	default:
		return nil
	}
	if want != signed {
		return newError(field, "the signed chart has the name %q and the version %q, which were not requested", oneLine(signed.Name), oneLine(signed.Version))
	}
	return nil
}

// readKeyring reads the keyring of a request. It may be armored.
func readKeyring(ctx context.Context, r Request) (openpgp.EntityList, error) {
	data, err := secretValue(ctx, r, *r.Keyring, DefaultKeyringKey)
	if err != nil {
		return nil, err
	}
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN ")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keyring, err := read(bytes.NewReader(data))
	if err != nil || len(keyring) == 0 {
		return nil, newError("", "the Secret %s/%s contains no OpenPGP keys", r.Namespace, r.Keyring.Name)
	}
	return keyring, nil
}

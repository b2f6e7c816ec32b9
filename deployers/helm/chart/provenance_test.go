// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	"helm.sh/helm/v4/pkg/provenance"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

// newKey returns an OpenPGP key, and the keyring with its public part.
func newKey(t *testing.T) (*openpgp.Entity, []byte) {
	t.Helper()
	key, err := openpgp.NewEntity("test", "", "test@test.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	var keyring bytes.Buffer
	if err := key.Serialize(&keyring); err != nil {
		t.Fatal(err)
	}
	return key, keyring.Bytes()
}

// sign returns the provenance file of an archive, as Helm writes it.
func sign(t *testing.T, key *openpgp.Entity, archive []byte, name, version string) []byte {
	t.Helper()
	signatory := &provenance.Signatory{Entity: key}
	out, err := signatory.ClearSign(archive, name+"-"+version+".tgz", []byte("apiVersion: v2\nname: "+name+"\nversion: "+version+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(out)
}

// armored returns a keyring in text form.
func armored(t *testing.T, keyring []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(keyring); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestProvenance(t *testing.T) {
	key, keyring := newKey(t)
	stranger, otherKeyring := newKey(t)
	content, static := newStore(), newFiles()
	reg, repo := newServer(t, true, content), newServer(t, true, static)
	keyrings := secrets{"keys": {chart.DefaultKeyringKey: keyring, "armored": armored(t, keyring), "both": append(bytes.Clone(otherKeyring), keyring...), "other": otherKeyring, "invalid": []byte(password)}}
	request := func(r chart.Request, name string) chart.Request {
		r.Secrets, r.Keyring = keyrings, &lsv1alpha1.LocalSecretReference{Name: "keys", Key: name}
		return r
	}
	good := sign(t, key, testChart, "test", "1.0.0")
	content.push(t, "test", "1.0.0", layer{helmLayer, testChart}, layer{provLayer, good})
	static.set("/index.yaml", index(entry("1.0.0", testDigest, "test-1.0.0.tgz")))
	static.set("/test-1.0.0.tgz", testChart)
	static.set("/test-1.0.0.tgz.prov", good)

	t.Run("accepts charts that a key of the keyring has signed [Ex33]", func(t *testing.T) {
		s := newSources(t, trust(reg, repo))
		for _, name := range []string{"", "armored", "both"} {
			mustFetch(t, s, request(ociRequest(reg.host()+"/test:1.0.0"), name))
			mustFetch(t, s, request(repoRequest(repo.URL, "^1"), name))
			mustFetch(t, s, request(urlRequest(repo.URL+"/test-1.0.0.tgz"), name))
		}
	})

	t.Run("rejects charts of other keys, and keyrings that it cannot use [Ex33]", func(t *testing.T) {
		s := newSources(t, trust(reg, repo))
		fails(t, s, request(ociRequest(reg.host()+"/test:1.0.0"), "other"), "ref", true, "the signature of the provenance file is not valid")
		fails(t, s, request(repoRequest(repo.URL, "1.0.0"), "other"), "helmChartRepo", true, "the signature of the provenance file is not valid")
		fails(t, s, request(repoRequest(repo.URL, "1.0.0"), "invalid"), "helmChartRepo", true, "keyring: the Secret ns/keys contains no OpenPGP keys")
		fails(t, s, request(repoRequest(repo.URL, "1.0.0"), "missing"), "helmChartRepo", false, `keyring: the Secret ns/keys has no key "missing"`)
	})

	t.Run("rejects charts without a signature [Ex33]", func(t *testing.T) {
		s := newSources(t, trust(reg, repo))
		content.push(t, "unsigned", "1.0.0", layer{helmLayer, testChart})
		fails(t, s, request(ociRequest(reg.host()+"/unsigned:1.0.0"), ""), "ref", true, "has no provenance file")
		inline := request(chart.Request{Namespace: "ns"}, "")
		inline.Chart.Archive = &helmv1alpha1.ArchiveAccess{Raw: base64.StdEncoding.EncodeToString(testChart)}
		fails(t, s, inline, "archive.raw", true, "has no provenance file")
	})

	for name, signature := range map[string][]byte{
		"another archive":     sign(t, key, otherChart, "test", "1.0.0"),
		"another version":     sign(t, key, testChart, "test", "0.9.0"),
		"another chart":       sign(t, key, testChart, "other", "1.0.0"),
		"an unknown signer":   sign(t, stranger, testChart, "test", "1.0.0"),
		"a changed text":      bytes.Replace(good, []byte("version: 1.0.0"), []byte("version: 1.0.1"), 1),
		"text without a sign": []byte(password),
	} {
		t.Run("rejects the signature of "+name+" [Ex33]", func(t *testing.T) {
			s := newSources(t, trust(reg, repo))
			content.push(t, "signed/test", "1.0.0", layer{helmLayer, testChart}, layer{provLayer, signature})
			fails(t, s, request(ociRequest(reg.host()+"/signed/test:1.0.0"), ""), "ref", true)
			static.set("/b/index.yaml", index(entry("1.0.0", testDigest, "test-1.0.0.tgz")))
			static.set("/b/test-1.0.0.tgz", testChart)
			static.set("/b/test-1.0.0.tgz.prov", signature)
			fails(t, s, request(repoRequest(repo.URL+"/b", "1.0.0"), ""), "helmChartRepo", true)
		})
	}
}

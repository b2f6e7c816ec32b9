// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ggcrtypes "github.com/google/go-containerregistry/pkg/v1/types"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	commit = "0123456789012345678901234567890123456789"
	source = "https://git.example/deployerkit"
	base   = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// newSigner returns a signer with its own key pair. It also returns the options with which cosign verifies the
// signatures of this signer.
func newSigner(t *testing.T) (*Signer, *cosign.CheckOpts) {
	t.Helper()
	password := []byte("secret")
	keys, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return password, nil })
	check(t, err)
	key, err := LoadKey(keys.PrivateBytes, password)
	check(t, err)
	if _, err := LoadKey(keys.PrivateBytes, []byte("another")); err == nil {
		t.Error("another password decrypts the key")
	}
	public, err := cosign.LoadPrivateKey(keys.PrivateBytes, password, nil)
	check(t, err)
	signer := &Signer{Key: key, Version: "v0.1.0", Commit: commit, Source: source, Builder: "https://builder.example"}
	return signer, &cosign.CheckOpts{
		SigVerifier: public, IgnoreTlog: true, Offline: true, NewBundleFormat: true, ClaimVerifier: cosign.IntotoSubjectClaimVerifier,
	}
}

// serve starts a registry and returns its address. If referrers is true, the registry supports the referrers API.
func serve(t *testing.T, referrers bool) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// newImage returns an image for Linux and the given architecture. The image has the labels that ko sets for a commit.
func newImage(t *testing.T, arch, commit string) v1.Image {
	t.Helper()
	config := &v1.ConfigFile{OS: "linux", Architecture: arch, Config: v1.Config{Labels: map[string]string{revision: commit}}}
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, ggcrtypes.OCIManifestSchema1), config)
	check(t, err)
	image = mutate.ConfigMediaType(image, ggcrtypes.OCIConfigJSON)
	return mutate.Annotations(image, map[string]string{baseName: "registry.example/base:1", baseDigest: base}).(v1.Image)
}

// pushIndex pushes an image for two platforms.
func pushIndex(t *testing.T, ref name.Reference, first, second string) {
	t.Helper()
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, ggcrtypes.OCIImageIndex),
		mutate.IndexAddendum{Add: newImage(t, "amd64", first)}, mutate.IndexAddendum{Add: newImage(t, "arm64", second)})
	check(t, remote.WriteIndex(ref, index))
}

// pushChart pushes a chart with the media type that Helm uses, and with the annotation that contains the commit.
func pushChart(t *testing.T, ref name.Reference) {
	t.Helper()
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, ggcrtypes.OCIManifestSchema1), "application/vnd.cncf.helm.config.v1+json")
	check(t, remote.Write(ref, mutate.Annotations(image, map[string]string{revision: commit}).(v1.Image)))
}

func TestArtifact(t *testing.T) {
	signer, key := newSigner(t)
	_, otherKey := newSigner(t)
	for _, registry := range []struct {
		name      string
		referrers bool
	}{{"a registry that lists referrers", true}, {"a registry that does not list referrers", false}} {
		t.Run(registry.name, func(t *testing.T) {
			address := serve(t, registry.referrers)
			image, chart := parseReference(t, address+"/x/program:v0.1.0"), parseReference(t, address+"/x/charts/program:0.1.0")
			pushIndex(t, image, commit, commit)
			pushChart(t, chart)
			for _, ref := range []name.Reference{image, chart} {
				check(t, signer.SignArtifact(t.Context(), ref))
			}

			t.Run("cosign verifies the signature and the provenance of images and charts [O70]", func(t *testing.T) {
				for ref, bases := range map[name.Reference]int{image: 1, chart: 0} {
					statements, err := listVerified(t, ref, key)
					check(t, err)
					slices.SortFunc(statements, func(a, b *intoto.Statement) int { return strings.Compare(a.GetPredicateType(), b.GetPredicateType()) })
					if len(statements) != 2 || statements[0].GetPredicateType() != types.CosignSignPredicateType {
						t.Fatalf("the statements of %s are %v", ref, statements)
					}
					checkProvenance(t, statements[1], ref.Name(), bases)
				}
			})
			t.Run("another key verifies nothing [O70]", func(t *testing.T) {
				if statements, err := listVerified(t, image, otherKey); err == nil {
					t.Errorf("it verifies %v", statements)
				}
			})
			t.Run("nothing verifies another image under the same tag [O70]", func(t *testing.T) {
				bundles, _, err := cosign.GetBundles(t.Context(), image, nil)
				check(t, err)
				changed := image.Context().Tag("v0.1.0")
				pushIndex(t, changed, commit, "another")
				if statements, err := listVerified(t, changed, key); err == nil {
					t.Errorf("without a signature: %v", statements)
				}
				described, err := remote.Get(changed)
				check(t, err)
				for _, b := range bundles {
					content, err := b.MarshalJSON()
					check(t, err)
					check(t, ociremote.WriteAttestationNewBundleFormat(image.Context().Digest(described.Digest.String()), content, types.CosignSignPredicateType))
				}
				if statements, err := listVerified(t, changed, key); err == nil {
					t.Errorf("with the signature of the first image: %v", statements)
				}
			})
		})
	}
}

func TestArtifactOfUnknownCommit(t *testing.T) {
	signer, key := newSigner(t)
	address := serve(t, true)
	for name, commits := range map[string][2]string{"another": {"another", "another"}, "none": {"", ""}, "several": {commit, "another"}} {
		t.Run("an image of commit "+name+" is not signed [O70]", func(t *testing.T) {
			ref := parseReference(t, address+"/x/"+name+":v0.1.0")
			pushIndex(t, ref, commits[0], commits[1])
			if err := signer.SignArtifact(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "commit") {
				t.Errorf("the error is %v", err)
			}
			if statements, err := listVerified(t, ref, key); err == nil {
				t.Errorf("it has %v", statements)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	signer, key := newSigner(t)
	_, otherKey := newSigner(t)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "a"), []byte("first"), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "b"), []byte("second"), 0o600))
	content, err := signer.SignFiles(t.Context(), dir, "a", "b")
	check(t, err)
	signed := &bundle.Bundle{}
	check(t, signed.UnmarshalJSON(content))
	for _, test := range []struct {
		name, content string
		key           *cosign.CheckOpts
		valid         bool
	}{
		{"cosign verifies the first file [O70]", "first", key, true},
		{"cosign verifies the second file [O70]", "second", key, true},
		{"a changed file is refused [O70]", "third", key, false},
		{"another key is refused [O70]", "first", otherKey, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := cosign.VerifyNewBundle(t.Context(), test.key, verify.WithArtifact(strings.NewReader(test.content)), signed)
			if (err == nil) != test.valid {
				t.Fatalf("the error is %v", err)
			}
			if test.valid {
				checkProvenance(t, result.Statement, "files", 0)
			}
		})
	}
	if _, err := signer.SignFiles(t.Context(), dir, "c"); err == nil {
		t.Error("a missing file is no error")
	}
}

// listVerified returns the statements about an artifact. It returns only statements whose signatures are valid for the
// key.
func listVerified(t *testing.T, ref name.Reference, key *cosign.CheckOpts) (out []*intoto.Statement, err error) {
	t.Helper()
	found, _, err := cosign.VerifyImageAttestations(t.Context(), ref, key)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		payload, err := one.Payload()
		check(t, err)
		var envelope struct{ PayloadType, Payload string }
		check(t, json.Unmarshal(payload, &envelope))
		raw, err := base64.StdEncoding.DecodeString(envelope.Payload)
		check(t, err)
		statement := &intoto.Statement{}
		check(t, protojson.Unmarshal(raw, statement))
		out = append(out, statement)
	}
	return out, nil
}

// checkProvenance requires that a statement contains the commit, the builder and the materials in the format of SLSA
// provenance v1.
func checkProvenance(t *testing.T, statement *intoto.Statement, artifact string, bases int) {
	t.Helper()
	materials := []any{map[string]any{"uri": "git+" + source, "digest": map[string]any{"gitCommit": commit}}}
	for range bases {
		materials = append(materials, map[string]any{
			"uri": "oci://registry.example/base:1", "digest": map[string]any{"sha256": strings.TrimPrefix(base, "sha256:")},
		})
	}
	want := map[string]any{
		"buildDefinition": map[string]any{
			"buildType": BuildType, "externalParameters": map[string]any{"artifact": artifact, "version": "v0.1.0"}, "resolvedDependencies": materials,
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": "https://builder.example"}},
	}
	if statement.GetPredicateType() != ProvenanceType {
		t.Errorf("the type is %s", statement.GetPredicateType())
	}
	if diff := gocmp.Diff(want, statement.GetPredicate().AsMap()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func parseReference(t *testing.T, ref string) name.Reference {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	check(t, err)
	return parsed
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

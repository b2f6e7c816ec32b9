// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cdv2 "github.com/gardener/landscaper/legacy-component-spec/bindings-go/apis/v2"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

const descriptorLayer = "application/vnd.ocm.software.component-descriptor.v2+yaml"

// resourceRequest returns a request for a resource of a component.
func resourceRequest(repository, resource string) chart.Request {
	r := chart.Request{Namespace: "ns", Context: &lsv1alpha1.Context{}}
	r.Context.RepositoryContext = &cdv2.UnstructuredTypedObject{Raw: []byte(repository)}
	r.Chart.ResourceRef = base64.StdEncoding.EncodeToString([]byte("component:\n  name: example.com/test\n  version: 1.0.0\nresource: " + resource + "\n"))
	return r
}

// unzip removes the compression of a file.
func unzip(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// artifactSet returns a chart in the form in which components contain artifacts of registries.
func artifactSet() []byte {
	manifest := mustMarshal(ocispec.Manifest{Layers: []ocispec.Descriptor{{MediaType: helmLayer, Digest: digest.FromBytes(testChart), Size: int64(len(testChart))}}})
	content := map[string]string{"blobs/a": string(manifest), "blobs/b": string(testChart), "index.json": "{}"}
	return charttest.Tar([]tar.Header{{Name: "index.json", Typeflag: tar.TypeReg}, {Name: "blobs/a", Typeflag: tar.TypeReg}, {Name: "blobs/b", Typeflag: tar.TypeReg}}, func(name string) string { return content[name] })
}

// resolver is a Source that counts its calls.
type resolver struct{ data []byte }

// Resolve returns the digest of the test's chart.
func (resolver) Resolve(context.Context, chart.Request) (chart.Identity, error) {
	return chart.Identity{Digest: testDigest, Reference: "resolved"}, nil
}

// Fetch returns the archive.
func (r resolver) Fetch(_ context.Context, _ chart.Request, id chart.Identity) (*chart.Archive, error) {
	return &chart.Archive{Identity: id, Data: r.data}, nil
}

func TestResources(t *testing.T) {
	content, static := newStore(), newFiles()
	reg, repo := newServer(t, true, content), newServer(t, true, static)
	content.push(t, "charts/test", "1.0.0", layer{helmLayer, testChart})
	static.set("/index.yaml", index(entry("1.0.0", testDigest, "a.tgz")))
	static.set("/a.tgz", testChart)
	set := artifactSet()
	resources := ""
	for name, access := range map[string]string{
		"local":  "type: localBlob\n      mediaType: application/gzip\n      localReference: " + testDigest,
		"old":    "type: localOciBlob\n      digest: " + testDigest,
		"set":    "type: localBlob/v1\n      mediaType: application/vnd.oci.image.manifest.v1+tar+gzip\n      localReference: " + chart.DigestOf(set),
		"oci":    "type: ociArtifact/v1\n      imageReference: " + reg.host() + "/charts/test:1.0.0",
		"helm":   "type: helm\n      helmRepository: " + repo.URL + "\n      helmChart: test:1.0.0",
		"helmV":  "type: helm\n      helmRepository: " + repo.URL + "\n      helmChart: test\n      version: 1.0.0",
		"push":   "type: helm\n      helmRepository: oci://" + reg.host() + "/charts\n      helmChart: test:1.0.0",
		"git":    "type: gitHub\n      repoUrl: a",
		"lost":   "type: localBlob\n      localReference: " + otherDigest,
		"absent": "type: helm\n      helmRepository: " + repo.URL + "\n      helmChart: test:3.0.0",
	} {
		resources += fmt.Sprintf("  - name: %s\n    version: 1.0.0\n    type: helmChart\n    extraIdentity: {kind: chart}\n    access:\n      %s\n", name, access)
	}
	old := "meta:\n  schemaVersion: v2\ncomponent:\n  name: example.com/test\n  resources:\n" + resources
	current := "apiVersion: ocm.software/v3alpha1\nkind: ComponentVersion\nspec:\n  resources:\n" + resources
	packed := unzip(t, charttest.Tar([]tar.Header{{Name: "component-descriptor.yaml", Typeflag: tar.TypeReg}}, func(string) string { return old }))
	blobs := []layer{{"application/gzip", testChart}, {"application/gzip", set}}
	content.push(t, "v2/component-descriptors/example.com/test", "1.0.0", append([]layer{{descriptorLayer + "+tar", packed}}, blobs...)...)
	content.push(t, "v3/component-descriptors/example.com/test", "1.0.0", append([]layer{{descriptorLayer, []byte(current)}}, blobs...)...)
	repository := func(path string) string {
		return fmt.Sprintf(`{"type":"ociRegistry","baseUrl":"https://%s/%s"}`, reg.host(), path)
	}

	t.Run("fetches charts of components in registries [E21]", func(t *testing.T) {
		s := newSources(t, trust(reg, repo))
		for _, path := range []string{"v2", "v3"} {
			for _, name := range []string{"local", "old", "set", "oci", "helm", "helmV", "push"} {
				r := resourceRequest(repository(path), "{name: "+name+", kind: chart}")
				for range 2 {
					if got := mustFetch(t, s, r); got.Digest != testDigest || !bytes.Equal(got.Data, testChart) {
						t.Errorf("%s %s: the digest is %s, want %s", path, name, got.Digest, testDigest)
					}
				}
			}
		}
		reg.take()
		mustResolve(t, s, resourceRequest(repository("v2"), "{name: local}"))
		if got := methods(reg.take()); got != "HEAD" {
			t.Errorf("the requests are %q, want one HEAD", got)
		}
	})

	t.Run("reports what is missing [E21]", func(t *testing.T) {
		s := newSources(t, trust(reg, repo))
		for resource, want := range map[string]string{
			"{name: unknown}":          "the component has no resource with this identity",
			"{name: local, kind: app}": "the component has no resource with this identity",
			"{name: lost}":             "has no layer for the resource",
			"{kind: chart}":            "the name of a resource",
		} {
			fails(t, s, resourceRequest(repository("v2"), resource), "resourceRef", true, want)
		}
		fails(t, s, resourceRequest(repository("v2"), "{name: absent}"), "resourceRef", false, "no version 3.0.0")
		fails(t, s, resourceRequest(repository("v4"), "{name: local}"), "resourceRef", false, "404 Not Found", reg.host())
		r := resourceRequest(repository("v2"), "{}")
		r.Chart.ResourceRef = "%" + password
		fails(t, s, r, "resourceRef", true, "getResourceKey")
	})

	unsupported := map[string]chart.Request{
		"an access of the type gitHub":  resourceRequest(repository("v2"), "{name: git}"),
		"the type CommonTransport":      resourceRequest(`{"type":"CommonTransportFormat/v1"}`, "{name: local}"),
		"componentNameMapping sha256":   resourceRequest(`{"type":"OCIRegistry","baseUrl":"a","componentNameMapping":"sha256-digest"}`, "{name: local}"),
		"Context has no repositoryCont": func() chart.Request { r := resourceRequest("", "{name: local}"); r.Context = nil; return r }(),
	}
	t.Run("says what to write instead of an unsupported resource [E21]", func(t *testing.T) {
		s := newSources(t, trust(reg, repo))
		for want, r := range unsupported {
			fails(t, s, r, "resourceRef", true, want, "let the blueprint write chart.ref or chart.helmChartRepo instead")
		}
	})

	t.Run("leaves unsupported resources to the resolver of the program [E21]", func(t *testing.T) {
		o := trust(reg, repo)
		o.Resolver = resolver{testChart}
		s := newSources(t, o)
		for _, r := range unsupported {
			if got := mustFetch(t, s, r); got.Reference != "resolved" || !bytes.Equal(got.Data, testChart) {
				t.Errorf("the archive is %+v, want that of the resolver", got.Identity)
			}
		}
		if got := mustFetch(t, s, resourceRequest(repository("v2"), "{name: local}")); got.Reference == "resolved" {
			t.Error("the resolver was called for a supported resource")
		}
		o.Resolver = resolver{otherChart}
		fails(t, newSources(t, o), unsupported["the type CommonTransport"], "resourceRef", true, "the archive has the digest")
	})
}

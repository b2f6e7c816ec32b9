// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gardener/landscaper/apis/config"
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// password is a part of all credentials of the tests. No error may contain it.
const password = "canary-7f3a"

const (
	helmConfig = "application/vnd.cncf.helm.config.v1+json"
	helmLayer  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	provLayer  = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// server is a server on the loopback interface that records its requests.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	requests []recorded
}

// recorded is a request.
type recorded struct{ method, path, authorization string }

func newServer(t *testing.T, tls bool, handler http.Handler) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, recorded{r.Method, r.URL.Path, r.Header.Get("Authorization")})
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// take returns the requests since the last call.
func (s *server) take() []recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// host returns the host and port of the server.
func (s *server) host() string { return s.Listener.Addr().String() }

// ca returns the certificate of the server.
func (s *server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// trust returns options that allow connections to servers.
func trust(servers ...*server) chart.Options {
	o := chart.Options{AllowPrivateAddresses: true}
	for _, s := range servers {
		o.Hosts = append(o.Hosts, chart.Host{Name: s.host(), CAData: s.ca()})
	}
	return o
}

func newSources(t *testing.T, o chart.Options) chart.Sources {
	t.Helper()
	s, err := chart.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustResolve resolves a chart.
func mustResolve(t *testing.T, s chart.Source, r chart.Request) chart.Identity {
	t.Helper()
	id, err := s.Resolve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// mustFetch resolves and fetches a chart.
func mustFetch(t *testing.T, s chart.Source, r chart.Request) *chart.Archive {
	t.Helper()
	archive, err := s.Fetch(t.Context(), r, mustResolve(t, s, r))
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// fails checks that a chart cannot be resolved and fetched, and that the error has a path and the given parts of its
// text, is final or not, has one line, and contains no password.
func fails(t *testing.T, s chart.Source, r chart.Request, path string, final bool, want ...string) {
	t.Helper()
	id, err := s.Resolve(t.Context(), r)
	if err == nil {
		_, err = s.Fetch(t.Context(), r, id)
	}
	fault, ok := errors.AsType[*chart.Error](err)
	if !ok {
		t.Fatalf("the error is %v, want a *chart.Error", err)
	}
	if fault.Path != path || fault.Final != final {
		t.Errorf("the error %q has the path %q and final %t, want %q and %t", err, fault.Path, fault.Final, path, final)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %q, want a text with %q", err, part)
		}
	}
	if strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 600 {
		t.Errorf("the error %q contains a password, or is too long", err)
	}
}

// secrets are Secrets in the namespace "ns", by their names.
type secrets map[string]map[string][]byte

// Get reads a Secret.
func (s secrets) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	data, ok := s[key.Name]
	if !ok || key.Namespace != "ns" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	into.(*corev1.Secret).Data = data
	return nil
}

// List is not used.
func (secrets) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("Secrets must not be listed")
}

// dockerConfig returns a docker configuration file with the same user and other passwords for each server.
func dockerConfig(servers map[string]string) []byte {
	auths := map[string]map[string]string{}
	for name, secret := range servers {
		auths[name] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("user:" + secret))}
	}
	out, _ := json.Marshal(map[string]any{"auths": auths}) // maps of strings can be encoded
	return out
}

// configFile returns the settings of a deployer with a docker configuration file.
func configFile(t *testing.T, content []byte) *config.OCIConfiguration {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return &config.OCIConfiguration{ConfigFiles: []string{name}}
}

// withAuths returns a Context with credentials for chart repositories.
func withAuths(t *testing.T, auths ...helmv1alpha1.Auth) *lsv1alpha1.Context {
	t.Helper()
	raw, err := json.Marshal(helmv1alpha1.HelmChartRepoCredentials{Auths: auths})
	if err != nil {
		t.Fatal(err)
	}
	out := &lsv1alpha1.Context{}
	out.Configurations = map[string]lsv1alpha1.AnyJSON{helmv1alpha1.HelmChartRepoCredentialsKey: {RawMessage: raw}}
	return out
}

// withPullSecrets returns a Context with registryPullSecrets.
func withPullSecrets(names ...string) *lsv1alpha1.Context {
	out := &lsv1alpha1.Context{}
	for _, name := range names {
		out.RegistryPullSecrets = append(out.RegistryPullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return out
}

// basic returns the header for a user and a password.
func basic(secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+secret))
}

// requireBasic protects a handler with passwords by path prefix.
func requireBasic(passwords map[string]string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix, secret := range passwords {
			if strings.HasPrefix(r.URL.Path, prefix) && r.Header.Get("Authorization") == basic(secret) {
				next.ServeHTTP(w, r)
				return
			}
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "denied: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	})
}

// store is the content of a registry.
type store struct{ http.Handler }

func newStore() store { return store{registry.New(registry.Logger(log.New(io.Discard, "", 0)))} }

// put sends a request to the registry without its access control.
func (s store) put(t *testing.T, method, path, contentType string, data []byte) {
	t.Helper()
	r := httptest.NewRequest(method, path, bytes.NewReader(data))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

// layer is a layer of an artifact.
type layer struct {
	mediaType string
	data      []byte
}

// push stores an artifact, and returns the digest of its manifest.
func (s store) push(t *testing.T, repository, tag string, layers ...layer) digest.Digest {
	t.Helper()
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	for i, l := range append([]layer{{helmConfig, []byte("{}")}}, layers...) {
		described := ocispec.Descriptor{MediaType: l.mediaType, Digest: digest.FromBytes(l.data), Size: int64(len(l.data))}
		s.put(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+string(described.Digest), "application/octet-stream", l.data)
		if i == 0 {
			manifest.Config = described
		} else {
			manifest.Layers = append(manifest.Layers, described)
		}
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, http.MethodPut, "/v2/"+repository+"/manifests/"+tag, ocispec.MediaTypeImageManifest, data)
	return digest.FromBytes(data)
}

// files serves files by their paths, with an ETag for each.
type files struct {
	mu      sync.Mutex
	content map[string][]byte
}

func newFiles() *files { return &files{content: map[string][]byte{}} }

func (f *files) set(path string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content[path] = data
}

// ServeHTTP serves a file.
func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	data, ok := f.content[r.URL.Path]
	f.mu.Unlock()
	etag := `"` + chart.DigestOf(data) + `"`
	switch w.Header().Set("ETag", etag); {
	case !ok:
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		_, _ = w.Write(data) // the client may have gone
	}
}

// index returns an index with versions of the chart "test".
func index(versions ...string) []byte {
	var out strings.Builder
	out.WriteString("apiVersion: v1\nentries:\n  another:\n  - version: 9.9.9\n    urls: [a]\n  test:\n")
	for _, v := range versions {
		out.WriteString(v)
	}
	out.WriteString("  zoo: []\ngenerated: \"2026-01-01T00:00:00Z\"\n")
	return []byte(out.String())
}

// entry returns an entry of an index. The digest may be empty.
func entry(version, digest, url string) string {
	out := "  - apiVersion: v2\n    name: test\n    description: |\n      several\n\n      lines\n    version: " + version + "\n    urls:\n    - " + url + "\n"
	if digest != "" {
		out += "    digest: " + strings.TrimPrefix(digest, "sha256:") + "\n"
	}
	return out
}

var (
	testChart   = charttest.Files{"templates/a.yaml": "a"}.Archive()
	testDigest  = chart.DigestOf(testChart)
	otherChart  = charttest.Files{"templates/a.yaml": "other"}.Archive()
	otherDigest = chart.DigestOf(otherChart)
)

// ociRequest, repoRequest and urlRequest return requests without a Context.
func ociRequest(ref string) chart.Request {
	return chart.Request{Namespace: "ns", Chart: helmv1alpha1.Chart{Ref: ref}}
}

func repoRequest(url, version string) chart.Request {
	return chart.Request{Namespace: "ns", Chart: helmv1alpha1.Chart{HelmChartRepo: &helmv1alpha1.HelmChartRepo{
		HelmChartRepoUrl: url, HelmChartName: "test", HelmChartVersion: version,
	}}}
}

func urlRequest(url string) chart.Request {
	return chart.Request{Namespace: "ns", Chart: helmv1alpha1.Chart{Archive: &helmv1alpha1.ArchiveAccess{Remote: &helmv1alpha1.RemoteArchiveAccess{URL: url}}}}
}

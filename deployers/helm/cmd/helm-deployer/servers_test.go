// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

// password is the password of all servers. No output may contain it.
const password = "canary-7f3a"

// server is a server on the loopback interface: a registry below /v2/, and a chart repository elsewhere. It records the
// credentials that it receives.
type server struct {
	*httptest.Server

	registry http.Handler

	mu          sync.Mutex
	files       map[string][]byte // by path
	credentials []string          // path and header of each request with a credential
}

// newServer starts a server. If it is protected, each request needs the user "user" and the password.
func newServer(t testing.TB, tls, protected bool) *server {
	t.Helper()
	s := &server{registry: registry.New(registry.Logger(log.New(io.Discard, "", 0))), files: map[string][]byte{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		if got != "" {
			s.mu.Lock()
			s.credentials = append(s.credentials, r.URL.Path+" "+got)
			s.mu.Unlock()
		}
		if protected && got != "Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+password)) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "denied: "+got, http.StatusUnauthorized)
			return
		}
		s.serve(w, r)
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

// serve answers a request that is allowed.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v2/") {
		s.registry.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	data, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(data) // the client may have gone
}

// host returns the host and port of the server.
func (s *server) host() string { return s.Listener.Addr().String() }

// flag returns the flag of the program that allows the server.
func (s *server) flag(t testing.TB, ca string) string {
	t.Helper()
	return "--chart-host=" + s.host() + ":private,ca=" + ca
}

// ca returns the certificate of the server in PEM format.
func (s *server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// received returns the credentials that the server has received.
func (s *server) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.credentials)
}

// setFile sets the content of a path of the chart repository.
func (s *server) setFile(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = data
}

// addChart adds version 1.0.0 of the chart test to the repository below a path. The parameter url is the URL of the
// archive in the index.
func (s *server) addChart(path, url string, archive []byte) {
	s.setFile(path+"/index.yaml", []byte("apiVersion: v1\nentries:\n  test:\n  - {apiVersion: v2, name: test, version: 1.0.0, digest: "+
		strings.TrimPrefix(chart.DigestOf(archive), "sha256:")+", urls: [\""+url+"\"]}\n"))
	s.setFile(path+"/test-1.0.0.tgz", archive)
}

// layer is a layer of an artifact in a registry.
type layer struct {
	mediaType string
	data      []byte
}

// push stores a chart in the registry, and returns the digest of its manifest. The provenance file may be nil.
func (s *server) push(t testing.TB, repository, tag string, archive, provenance []byte) string {
	t.Helper()
	layers := []layer{{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive}}
	if provenance != nil {
		layers = append(layers, layer{"application/vnd.cncf.helm.chart.provenance.v1.prov", provenance})
	}
	return s.pushArtifact(t, repository, tag, layers...)
}

// pushComponent stores version 1.0.0 of a component in the registry. Its resource chart is a chart in a registry.
func (s *server) pushComponent(t testing.TB, repository, name, chart string) {
	t.Helper()
	descriptor := "meta: {schemaVersion: v2}\ncomponent:\n  name: " + name + "\n  version: 1.0.0\n  resources:\n" +
		"  - {name: chart, version: 1.0.0, type: helmChart, access: {type: ociArtifact, imageReference: \"" + chart + "\"}}\n"
	s.pushArtifact(t, repository+"/component-descriptors/"+name, "1.0.0",
		layer{"application/vnd.ocm.software.component-descriptor.v2+yaml", []byte(descriptor)})
}

// pushArtifact stores an artifact in the registry, and returns the digest of its manifest.
func (s *server) pushArtifact(t testing.TB, repository, tag string, layers ...layer) string {
	t.Helper()
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	manifest.Config = s.putBlob(t, repository, layer{"application/vnd.cncf.helm.config.v1+json", []byte("{}")})
	for _, l := range layers {
		manifest.Layers = append(manifest.Layers, s.putBlob(t, repository, l))
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, http.MethodPut, "/v2/"+repository+"/manifests/"+tag, ocispec.MediaTypeImageManifest, data)
	return string(digest.FromBytes(data))
}

// putBlob stores a blob in the registry.
func (s *server) putBlob(t testing.TB, repository string, l layer) ocispec.Descriptor {
	t.Helper()
	described := ocispec.Descriptor{MediaType: l.mediaType, Digest: digest.FromBytes(l.data), Size: int64(len(l.data))}
	s.put(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+string(described.Digest), "application/octet-stream", l.data)
	return described
}

// put sends a request to the registry without its access control.
func (s *server) put(t testing.TB, method, path, contentType string, data []byte) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(data))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	s.registry.ServeHTTP(w, r)
	if w.Code >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

// dockerConfig returns a docker configuration file with a password for a host.
func dockerConfig(host, secret string) []byte {
	auth := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	out, _ := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"auth": auth}}}) // maps of strings can be encoded
	return out
}

// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/targets"
)

// loosePolicy is a policy that allows loopback addresses, on which the servers of the tests listen.
var loosePolicy = targets.Policy{AllowPrivateHosts: true}

// fakeAPI implements the part of an API server that a new client needs. It also serves one ConfigMap in every
// namespace.
type fakeAPI struct {
	*httptest.Server
	mu          sync.Mutex
	validTokens map[string]bool // the valid tokens
	requests    map[string]int  // number of requests by path
	sentTokens  []string        // tokens that were sent
	crd         bool            // whether the server serves the kind Widget
	handle      func(http.ResponseWriter, *http.Request) bool
}

func newAPI(t *testing.T, tokens ...string) *fakeAPI {
	t.Helper()
	a := startAPI(tokens...)
	t.Cleanup(a.Close)
	return a
}

func startAPI(tokens ...string) *fakeAPI {
	a := &fakeAPI{validTokens: map[string]bool{}, requests: map[string]int{}}
	a.accept(tokens...)
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.EnableHTTP2 = true
	a.StartTLS()
	return a
}

func (a *fakeAPI) accept(tokens ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.validTokens)
	for _, token := range tokens {
		a.validTokens[token] = true
	}
}

func (a *fakeAPI) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *fakeAPI) getCount(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[path]
}

func (a *fakeAPI) serve(w http.ResponseWriter, req *http.Request) {
	a.mu.Lock()
	a.requests[req.URL.Path]++
	token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	a.sentTokens = append(a.sentTokens, token)
	good, crd, handle := a.validTokens[token], a.crd, a.handle
	a.mu.Unlock()
	if handle != nil && handle(w, req) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !good {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"who is %s?"}`, token)
		return
	}
	switch {
	case req.URL.Path == "/api" || req.URL.Path == "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, kinds(req.URL.Path, crd))
	case strings.HasSuffix(req.URL.Path, "/configmaps/cm"):
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"default"},"data":{"a":"b"}}`)
	default:
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	}
}

// kinds returns a response to an aggregated discovery request.
func kinds(path string, crd bool) string {
	const list = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[%s]}`
	const group = `{"metadata":{"name":%q},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":%q,"responseKind":{"group":%q,"version":"v1","kind":%q},"scope":"Namespaced","singularResource":"x","verbs":["get"]}]}]}`
	switch {
	case path == "/api":
		return fmt.Sprintf(list, fmt.Sprintf(group, "", "configmaps", "", "ConfigMap"))
	case crd:
		return fmt.Sprintf(list, fmt.Sprintf(group, "example.org", "widgets", "example.org", "Widget"))
	}
	return fmt.Sprintf(list, "")
}

func (a *fakeAPI) getCA() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}))
}

// watchCertificates makes the server request client certificates. The returned function reports whether a client has
// sent one.
func watchCertificates(a *fakeAPI) func() bool {
	shown := atomic.Bool{}
	a.TLS.ClientAuth = tls.RequestClientCert
	a.set(func() {
		a.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			shown.Store(shown.Load() || len(r.TLS.PeerCertificates) > 0)
			return false
		}
	})
	return shown.Load
}

func encodeBase64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func decodeBase64(t *testing.T, text string) string {
	t.Helper()
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// newContent returns the content of a Target that refers to this server.
func (a *fakeAPI) newContent(t *testing.T, token string) string {
	t.Helper()
	return wrapKubeconfig(t, newKubeconfig(fmt.Sprintf("server: %q, certificate-authority-data: %s", a.URL, a.getCA()), fmt.Sprintf("token: %q", token), ""))
}

// wrapKubeconfig returns the content of a Target with the kubeconfig.
func wrapKubeconfig(t *testing.T, kubeconfig string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{"kubeconfig": kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newResolvedTarget returns a resolved Target with the given name and content.
func newResolvedTarget(name, content string) *lsv1alpha1.ResolvedTarget {
	return &lsv1alpha1.ResolvedTarget{
		Target: &lsv1alpha1.Target{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, UID: types.UID(name)},
			Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType},
		},
		Content: content,
	}
}

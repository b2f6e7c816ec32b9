// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// webhookServer answers the webhooks of all sets. It allows each object, and converts objects between versions that
// have the same fields.
type webhookServer struct {
	*httptest.Server
	bundle   string  // the certificate, as the value of a field caBundle
	requests counter // by path: the name of a set, and validate, mutate, convert or own
	client.Reader
}

func startWebhookServer() *webhookServer {
	s := &webhookServer{Reader: world.NewClient(GinkgoTB(), cp.Config)}
	mux := http.NewServeMux()
	mux.HandleFunc("/{set}/validate", s.handleReview)
	mux.HandleFunc("/{set}/mutate", s.handleReview)
	mux.HandleFunc("/{set}/convert", s.convert)
	mux.HandleFunc("/{set}/own", func(w http.ResponseWriter, req *http.Request) {
		s.handleIfRunning(w, req, req.PathValue("set"), s.handleReview)
	})
	mux.HandleFunc("/apis/{group}/v1", func(w http.ResponseWriter, req *http.Request) {
		_, group, _ := strings.Cut(req.PathValue("group"), ".")
		set, _, _ := strings.Cut(group, ".")
		s.handleIfRunning(w, req, set, s.handleDiscovery)
	})
	s.Server = httptest.NewTLSServer(mux)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	s.bundle = base64.StdEncoding.EncodeToString(certificate)
	return s
}

// getPort returns the port of the server.
func (s *webhookServer) getPort() string {
	address, err := url.Parse(s.URL)
	Expect(err).NotTo(HaveOccurred())
	return address.Port()
}

// handleIfRunning calls a handler if the Deployment "admission" of the set is available.
func (s *webhookServer) handleIfRunning(w http.ResponseWriter, req *http.Request, set string, handle http.HandlerFunc) {
	deployment := &appsv1.Deployment{}
	err := s.Get(req.Context(), client.ObjectKey{Namespace: "set-" + set, Name: "admission"}, deployment)
	if err != nil || deployment.Status.AvailableReplicas == 0 {
		http.Error(w, "the server does not run", http.StatusServiceUnavailable)
		return
	}
	handle(w, req)
}

// handleDiscovery answers that an API group contains no resources.
func (s *webhookServer) handleDiscovery(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metav1.APIResourceList{ // as in review
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: req.PathValue("group") + "/v1", APIResources: []metav1.APIResource{},
	})
}

// counter counts what happens to things that a text identifies.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *counter) add(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[key]++
}

func (t *counter) get(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[key]
}

func (s *webhookServer) handleReview(w http.ResponseWriter, req *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(req.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	s.requests.add(req.URL.Path)
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) // if the API server does not receive the response, it reports this
}

func (s *webhookServer) convert(w http.ResponseWriter, req *http.Request) {
	review := &apiextv1.ConversionReview{}
	if err := json.NewDecoder(req.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "not a ConversionReview", http.StatusBadRequest)
		return
	}
	s.requests.add(req.URL.Path)
	response := &apiextv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, one := range review.Request.Objects {
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(one.Raw, &obj.Object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		obj.SetAPIVersion(review.Request.DesiredAPIVersion)
		if obj.Object["metadata"] == nil { // while it applies, the API server also converts objects without metadata
			obj.Object["metadata"] = map[string]any{}
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: obj})
	}
	review.Response, review.Request = response, nil
	_ = json.NewEncoder(w).Encode(review)
}

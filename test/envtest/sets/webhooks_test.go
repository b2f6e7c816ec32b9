// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// webhookServer answers the webhooks of all sets. It allows each object, and converts objects between versions that
// have the same fields.
type webhookServer struct {
	*httptest.Server
	bundle   string // the certificate, as the value of a field caBundle
	requests tally  // by path: the name of a set, and validate, mutate or convert
}

func startWebhookServer() *webhookServer {
	s := &webhookServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("/{set}/validate", s.review)
	mux.HandleFunc("/{set}/mutate", s.review)
	mux.HandleFunc("/{set}/convert", s.convert)
	s.Server = httptest.NewTLSServer(mux)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	s.bundle = base64.StdEncoding.EncodeToString(certificate)
	return s
}

// tally counts what happens to things that a text identifies.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) add(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[key]++
}

func (t *tally) of(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[key]
}

func (s *webhookServer) review(w http.ResponseWriter, req *http.Request) {
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

// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/declarative"
)

func TestWithReadyStatus(t *testing.T) {
	for _, of := range []string{
		"apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 ReplicaSet", "apps/v1 DaemonSet", "batch/v1 Job", "v1 Pod", "v1 PersistentVolumeClaim",
		"v1 Namespace", "apiextensions.k8s.io/v1 CustomResourceDefinition", "example.com/v1 Anything", "v1 ConfigMap",
	} {
		version, kind := of[:len(of)-len(kindIn(of))-1], kindIn(of)
		child := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "a", "generation": 3}, "spec": map[string]any{"replicas": 2}}
		t.Run(of+" [F31]", func(t *testing.T) {
			if result := readiness.CheckObject(WithReadyStatus(t, child)); !result.IsReady() {
				t.Errorf("the child is not ready: %s", result.Message)
			}
			if child["status"] != nil {
				t.Error("the child itself was changed")
			}
		})
	}
	t.Run("a Service with a load balancer [F31]", func(t *testing.T) {
		service := map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"type": "LoadBalancer", "clusterIP": "10.0.0.1"},
		}
		if result := readiness.CheckObject(WithReadyStatus(t, service)); !result.IsReady() {
			t.Errorf("the Service is not ready: %s", result.Message)
		}
	})
}

func kindIn(of string) string {
	for i := range of {
		if of[i] == ' ' {
			return of[i+1:]
		}
	}
	return of
}

func TestWithStatus(t *testing.T) {
	handler := declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		pod, _, err := declarative.Find[corev1.Pod](req.Children, "Pod", "p")
		if err != nil {
			return nil, err
		}
		return declarative.NewBuilder(map[string]any{"phase": pod.Status.Phase}).Build()
	})
	pod := WithStatus(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`, corev1.PodStatus{Phase: corev1.PodRunning})
	plan, err := Run(t.Context(), handler, newOptions(), NewItem(t, "shop", "web", map[string]any{}), pod)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"apiVersion":"declarative.deployerkit.dev/v1alpha1","kind":"ProviderStatus","observedGeneration":1,"phase":"Running"}`; string(plan.Status) != want {
		t.Errorf("[F31] got %s", plan.Status)
	}
}

// finalizingHandler is a handler whose Finalize is not done until no child is left.
type finalizingHandler struct{ declarative.Handler }

func (finalizingHandler) Finalize(_ context.Context, req *declarative.SyncRequest) (*declarative.FinalizeResponse, error) {
	if len(req.Children) > 0 {
		return &declarative.FinalizeResponse{Retry: time.Second}, nil
	}
	return nil, nil
}

func TestFinalize(t *testing.T) {
	item := NewItem(t, "shop", "web", map[string]any{})
	child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}}}
	for name, tc := range map[string]struct {
		handler  declarative.Handler
		children []any
		want     time.Duration
		fails    bool
	}{
		"a finalizer waits for a child [F31]":             {finalizingHandler{newStaticHandler()}, []any{child}, time.Second, false},
		"a finalizer is done without children [F31]":      {finalizingHandler{newStaticHandler()}, nil, 0, false},
		"a handler without a Finalizer is an error [F31]": {newStaticHandler(), nil, 0, true},
		"an unreadable child is an error [F31]":           {finalizingHandler{newStaticHandler()}, []any{"a: b: c"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := Finalize(t.Context(), tc.handler, newOptions(), item, tc.children...)
			if (err != nil) != tc.fails || err == nil && response.Retry != tc.want {
				t.Errorf("Finalize(...) = %+v, %v, want Retry %s, error: %t", response, err, tc.want, tc.fails)
			}
		})
	}
}

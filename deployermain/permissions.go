// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeCheck checks whether the process may write deploy items and their status, by patch or by update. It asks the API
// server at each probe until both writes are allowed.
type writeCheck struct {
	client    client.Client
	namespace string

	allowed atomic.Bool
}

func (w *writeCheck) check(req *http.Request) error {
	if w.allowed.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), probeTimeout)
	defer cancel()
	for _, subresource := range []string{"", "status"} {
		if !w.isAllowed(ctx, "patch", subresource) && !w.isAllowed(ctx, "update", subresource) {
			resource := "deployitems"
			if subresource != "" {
				resource += "/" + subresource
			}
			return fmt.Errorf("neither patch nor update of %s is allowed", resource)
		}
	}
	w.allowed.Store(true)
	return nil
}

// isAllowed asks the API server whether a verb is allowed. If there is no clear response, it returns true.
func (w *writeCheck) isAllowed(ctx context.Context, verb, subresource string) bool {
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"group": lsv1alpha1.SchemeGroupVersion.Group, "resource": "deployitems", "subresource": subresource,
			"verb": verb, "namespace": w.namespace,
		}},
	}}
	if err := w.client.Create(ctx, review); err != nil {
		return true
	}
	allowed, said, err := unstructured.NestedBool(review.Object, "status", "allowed")
	return allowed || !said || err != nil
}

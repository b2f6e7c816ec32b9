// SPDX-License-Identifier: Apache-2.0

package licence_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/declarative"
)

// request returns the request that a handler receives for an item with the given child.
func request(t *testing.T, item *lsv1alpha1.DeployItem, child runtime.Object) *declarative.SyncRequest {
	t.Helper()
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		t.Fatal(err)
	}
	req, err := declarative.NewRequest(item, nil, &unstructured.Unstructured{Object: body})
	if err != nil {
		t.Fatal(err)
	}
	return req
}

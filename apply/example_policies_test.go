// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
)

// A policy determines whether the engine may change or delete an object, and a strategy determines how the engine
// writes it.
func ExampleDesired() {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"},
	}}
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "settings"},
	}}
	desired := []apply.Desired{
		{Object: namespace, Policy: apply.PolicyKeep}, // the object stays when the item is deleted
		{Object: config}, // Manage: created, updated and deleted with the item
	}
	for _, one := range desired {
		fmt.Println(apply.ToRef(one.Object), one.Policy)
	}
	// Output:
	// Namespace shop keep
	// ConfigMap shop/settings
}

// Objects are deleted group by group. The deletion of a group begins when all objects of the previous group are gone.
func ExampleDefaultDeletionGroups() {
	for _, group := range apply.DefaultDeletionGroups() {
		fmt.Println(group.Type)
	}
	// Output:
	// webhook configurations
	// namespaced-resources
	// cluster-scoped-resources without namespaces and webhook configurations
	// namespaces
	// crds
}

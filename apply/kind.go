// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is what the engine must know about a kind before it writes an object of it.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool
	// fromItem means that a manifest of the same item defines the kind, so the cluster need not know it yet.
	fromItem bool
}

// kindOf looks in the manifests first, and then in the cluster. A cluster that is asked too early may not know the
// kind, and is not asked again for a while.
func (e *Engine) kindOf(ref Ref, defined definitions) (kind, error) {
	gvk := ref.GVK()
	if found, ok := defined[gvk]; ok {
		return found, nil
	}
	mapping, err := e.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return kind{}, err
	}
	return kind{resource: mapping.Resource, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}

// definitions are the kinds that CustomResourceDefinitions of the manifests define.
type definitions map[schema.GroupVersionKind]kind

const definitionKind = "CustomResourceDefinition"

func isDefinition(gk schema.GroupKind) bool {
	return gk.Kind == definitionKind && gk.Group == "apiextensions.k8s.io"
}

// learn adds the kinds that manifests define.
func (d definitions) learn(desired []Desired) {
	for _, one := range desired {
		if isDefinition(one.Object.GroupVersionKind().GroupKind()) && one.Policy != Ignore && one.Policy != Retain {
			d.add(one.Object.Object)
		}
	}
}

// add adds all served versions. It ignores faults of the definition, which the API server describes better.
func (d definitions) add(definition map[string]any) {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(definition, fields...)
		return value
	}
	group, kindName, plural := text("spec", "group"), text("spec", "names", "kind"), text("spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		gv := schema.GroupVersion{Group: group, Version: name}
		d[gv.WithKind(kindName)] = kind{resource: gv.WithResource(plural), namespaced: text("spec", "scope") == "Namespaced", fromItem: true}
	}
}

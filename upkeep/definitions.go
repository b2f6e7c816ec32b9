// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/readiness"
)

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// ExpectsStatus tells whether objects of a custom kind get a status. Asked
// once; a definition that cannot be read promises none.
func (c *Cluster) ExpectsStatus(ctx context.Context, gvk schema.GroupVersionKind) bool {
	if known, ok := c.statuses.Load(gvk); ok {
		return known == true
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(definitionKind)
	err = c.Get(ctx, types.NamespacedName{Name: mapping.Resource.GroupResource().String()}, definition)
	if ctx.Err() != nil {
		return true // look again
	}
	expects := err == nil && readiness.ExpectsStatus(definition, gvk.Version)
	c.statuses.Store(gvk, expects)
	return expects
}

// Mapping finds the resource of a kind; nil, nil when the cluster does not know it.
// Errors: the kinds of the cluster cannot be read.
func (c *Cluster) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return mapping, err
}

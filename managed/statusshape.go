// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/internal/notfound"
)

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// GetStatusShape describes the status that the CustomResourceDefinition of a kind declares. It reads the definition
// only once for each kind. If it cannot read the definition, it returns readiness.StatusOther.
func (c *Cluster) GetStatusShape(ctx context.Context, gvk schema.GroupVersionKind) readiness.StatusShape {
	if known, ok := c.statusShapes.Load(gvk); ok {
		return known.(readiness.StatusShape)
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return readiness.StatusNone
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(definitionKind)
	err = c.Get(ctx, types.NamespacedName{Name: mapping.Resource.GroupResource().String()}, definition)
	if ctx.Err() != nil {
		return readiness.StatusReports // the next call tries again
	}
	shape := readiness.StatusOther
	if err == nil {
		shape = readiness.GetStatusShape(definition, gvk.Version)
	}
	if err == nil || notfound.IsProof(err) || apierrors.IsForbidden(err) {
		c.statusShapes.Store(gvk, shape)
	}
	return shape
}

// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
)

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// StatusOf describes the status that the CustomResourceDefinition of a kind declares. It reads the definition only once
// for each kind. If it cannot read the definition, it returns readiness.StatusOther.
func (c *Cluster) StatusOf(ctx context.Context, gvk schema.GroupVersionKind) readiness.StatusShape {
	if known, ok := c.statuses.Load(gvk); ok {
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
		shape = readiness.StatusOf(definition, gvk.Version)
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		c.statuses.Store(gvk, shape)
	}
	return shape
}

// Judge checks by the default rules whether an object in the item's target is ready. If the result is uncertain (see
// readiness.Result.Guessed), Judge writes an event, but only once for each kind.
func (r *Run) Judge(ctx context.Context, live *unstructured.Unstructured) readiness.Result {
	rules := readiness.Rules{
		Grace: r.Keeper.options.StatusGrace, Now: r.Keeper.rt.Clock.Now(),
		StatusOf: func(gvk schema.GroupVersionKind) readiness.StatusShape { return r.Cluster.StatusOf(ctx, gvk) },
	}
	result := rules.Of(live)
	if !result.Guessed {
		return result
	}
	kinds := r.Value(guessedKinds{}, func() any { return &sync.Map{} }).(*sync.Map)
	if _, reported := kinds.LoadOrStore(live.GroupVersionKind().GroupKind(), true); !reported {
		ref := apply.RefOf(live)
		r.Event(related(ref), corev1.EventTypeWarning, "ReadinessUnknown", ref.String()+
			" counts as ready: its status has neither conditions nor observedGeneration, so use a custom readiness check")
	}
	return result
}

// guessedKinds is the key under which Run.Value stores the kinds for which Judge has written an event.
type guessedKinds struct{}

// Mapping returns the REST mapping of a kind. It returns nil, nil if the cluster does not serve the kind. It returns an
// error if discovery fails.
func (c *Cluster) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return mapping, err
}

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

// StatusOf returns what is known about the status of a custom kind. It asks the target once. If the definition cannot
// be read, the shape of the status is unknown.
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
		return readiness.StatusReports // try again later
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

// Judge judges an object of the item's target by the default rules. If the rules had to guess, Judge reports that by
// an event, once for each kind.
func (r *Run) Judge(ctx context.Context, live *unstructured.Unstructured) readiness.Result {
	rules := readiness.Rules{
		Grace: r.options.StatusGrace, Now: r.rt.Clock.Now(),
		StatusOf: func(gvk schema.GroupVersionKind) readiness.StatusShape { return r.Cluster.StatusOf(ctx, gvk) },
	}
	result := rules.Of(live)
	if result.Guessed {
		r.reportGuess(live)
	}
	return result
}

// guessedKinds is the key of the kinds that were reported.
type guessedKinds struct{}

// reportGuess writes an event, once for each kind of an item.
func (r *Run) reportGuess(live *unstructured.Unstructured) {
	kinds := r.Value(guessedKinds{}, func() any { return &sync.Map{} }).(*sync.Map)
	if _, reported := kinds.LoadOrStore(live.GroupVersionKind().GroupKind(), true); reported {
		return
	}
	ref := apply.RefOf(live)
	r.Event(related(ref), corev1.EventTypeWarning, "ReadinessUnknown", ref.String()+
		" counts as ready: its status has neither conditions nor observedGeneration, so a check of its own must say when it is")
}

// Mapping returns the mapping of a kind. It returns nil, nil if the cluster does not know the kind, and an error if
// the kinds of the cluster cannot be read.
func (c *Cluster) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return mapping, err
}

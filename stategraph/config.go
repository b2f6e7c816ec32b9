// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// NewGraphOf is NewGraph for items whose spec.config is a C. In each run the configuration is decoded strictly, as by Config, and
// checked by the functions validate, once and before any component runs: one that is wrong ends the job, and nothing is touched.
// Bodies get it from With, or from Config. A deletion does not need it.
func NewGraphOf[C any](validate ...func(*C) error) *Builder {
	b := NewGraph()
	b.decode = func(item *lsv1alpha1.DeployItem) (any, error) {
		config, err := deployerlib.DecodeConfig[C](item)
		if err != nil {
			return nil, err
		}
		var faults []error
		for _, check := range validate {
			faults = append(faults, check(config))
		}
		return config, errors.Join(faults...)
	}
	return b
}

// Context is the context of a call for a component, with the configuration of the item.
type Context[C any] struct {
	context.Context

	// Config is spec.config of the item. All components of a run share it: it must not be changed.
	Config *C
	// Item is what is known about the item besides.
	Item ItemInfo
}

// ItemInfo names a deploy item.
type ItemInfo struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
}

// With makes a function for Object, Versioned, ForEach, WithData and the like of one that is given the configuration, so that the
// body need not decode it:
//
//	stategraph.Object(stategraph.With(func(ctx stategraph.Context[Config]) (*corev1.Service, error) { … ctx.Config.Port … }))
//
// Errors: those of Config, if the graph was not made by NewGraphOf[C]; those of the function.
func With[C, R any](f func(ctx Context[C]) (R, error)) func(ctx context.Context) (R, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context) (R, error) {
		var none R
		n, err := From(ctx)
		if err != nil {
			return none, err
		}
		config, ok := n.run.config.(*C)
		if !ok {
			if config, err = deployerlib.DecodeConfig[C](n.run.item); err != nil {
				return none, err
			}
		}
		return f(Context[C]{Context: ctx, Config: config, Item: infoOf(n.Item())})
	}
}

// infoOf names an item.
func infoOf(item *lsv1alpha1.DeployItem) ItemInfo {
	return ItemInfo{
		Name: item.Name, Namespace: item.Namespace, UID: string(item.UID), Labels: item.Labels, Annotations: item.Annotations,
	}
}

// configure decodes the configuration of an item, if the graph knows its type; else the result is nil.
func (g *Graph) configure(item *lsv1alpha1.DeployItem) (config any, err error) {
	defer recovered(&err)
	if g.decode == nil {
		return nil, nil
	}
	return g.decode(item)
}

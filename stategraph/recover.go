// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
)

// recover finds the objects of an item whose inventory was lost by their labels.
func (c *call) recover(ctx context.Context) error {
	if c.run.Cluster == nil {
		return nil
	}
	return c.run.Recover(ctx, c.graph.kinds(), c.graph.complete)
}

// kinds are those of all objects that the graph may keep, as far as they are known before a run. A list of the whole
// cluster finds the namespaces.
func (g *Graph) kinds() map[schema.GroupVersionKind]map[string]bool {
	out := map[schema.GroupVersionKind]map[string]bool{}
	for i := range g.nodes {
		if keeps, ok := g.nodes[i].resource.(*objects); ok {
			for _, kind := range keeps.kinds {
				out[kind] = nil
			}
		}
	}
	return out
}

// complete fills in to which component an object belongs, and what the graph says about that.
func (g *Graph) complete(entry *apply.Entry, obj metav1.Object) {
	entry.Component = cmp.Or(obj.GetAnnotations()[LabelComponent], obj.GetLabels()[LabelComponent])
	place, present := g.index[entry.Component]
	if !present {
		return
	}
	entry.Requires = g.nodes[place].unit.Requires
	if keeps, ok := g.nodes[place].resource.(*objects); ok && keeps.policy != apply.Manage {
		entry.Policy = keeps.policy
	}
}

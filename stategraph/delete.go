// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

// removing removes components, wave by wave.
type removing struct {
	*call

	walk *run
	refs map[string][]apply.Ref // by component, its objects to delete
	undo map[string]bool        // components with a Delete that is due
}

// removeLeft removes what the graph does not keep any more. What belongs to components that are gone is removed once
// the walk was complete. What present components no longer keep is removed as soon as all components that require them
// are ready without it. removeLeft returns what is not gone yet.
func (c *call) removeLeft(ctx context.Context, walk *run, w *walked) ([]ComponentStatus, error) {
	if w.ended != nil {
		return nil, nil
	}
	r := &removing{call: c, walk: walk, refs: map[string][]apply.Ref{}, undo: map[string]bool{}}
	for _, entry := range c.target.Unclaimed() {
		if w.prunable(entry.Component) {
			r.refs[entry.Component] = append(r.refs[entry.Component], entry.Ref())
		}
	}
	for _, owed := range slices.Clone(c.status.Undo) {
		place, present := c.graph.index[owed.Name]
		switch {
		case present && c.graph.nodes[place].deleter == nil:
			c.status.removeFinalizer(owed.Name) // its Delete was removed from the code, but the component is still wanted
		case !present && w.ready():
			r.undo[owed.Name] = true
		}
	}
	return r.remove(ctx)
}

// delete removes everything.
func (c *call) delete(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if err := c.connectToDelete(ctx, target); err != nil {
		return err
	}
	c.memory.Forgotten()
	r := &removing{call: c, refs: map[string][]apply.Ref{}, undo: map[string]bool{}}
	for _, entry := range c.status.Inventory.Entries {
		r.refs[entry.Component] = append(r.refs[entry.Component], entry.Ref())
	}
	for _, owed := range c.status.Undo {
		r.undo[owed.Name] = true
	}
	r.walk = c.openWalk(ctx)
	left, err := r.remove(ctx)
	c.status.Components, c.status.Omitted = left, 0
	c.condition(lsv1alpha1.ConditionFalse, ReasonRemoving, summary(left))
	if noteErr := c.run.Note(c.target.Inventory()); noteErr != nil {
		return noteErr
	}
	switch {
	case err != nil:
		return c.run.ApplyError(err)
	case len(left) > 0 && c.run.Cluster != nil:
		return c.run.Wait("delete", 0, summary(left), lookAgain)
	case len(left) > 0:
		return deployerlib.WaitFor(summary(left), lookAgain)
	}
	if err := c.run.Leave(ctx, apply.Options{}, nil); err != nil {
		return err
	}
	if len(c.graph.exports) > 0 {
		if err := deployerlib.DeleteExport(ctx, c.keeper.Secrets(), c.item); err != nil {
			return err
		}
	}
	c.keeper.Forget(c.item.UID)
	return nil
}

// connectToDelete opens the target if there may be something to delete in it.
func (c *call) connectToDelete(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	stored := len(c.status.Inventory.Entries)+len(c.status.Inventory.Former) > 0
	if !stored && (target == nil || len(c.status.Undo) == 0 && !c.run.LostInventory()) {
		return nil
	}
	if err := c.run.Connect(ctx, target); err != nil {
		return err
	}
	if err := c.recover(ctx); err != nil {
		return err
	}
	c.run.Cluster.Watcher().Forget(c.item.UID)
	return nil
}

// remove goes wave by wave, as far as possible without waiting. It returns what is not gone yet.
func (r *removing) remove(ctx context.Context) (left []ComponentStatus, err error) {
	waves := graph.Removal(r.graph.relations(r.stored()), r.components())
	for i, wave := range waves {
		reasons, errs := make([]string, len(wave)), make([]error, len(wave))
		inParallel(len(wave), r.options.Parallel, func(i int) { reasons[i], errs[i] = r.one(ctx, wave[i]) })
		if left = r.waiting(wave, reasons, errs); len(left) == 0 {
			continue
		}
		return append(left, r.behind(left, waves[i+1:])...), errors.Join(errs...)
	}
	return nil, nil
}

// one removes one component. It undoes first what the component has to undo, because that may need its objects.
func (r *removing) one(ctx context.Context, component string) (waits string, err error) {
	if r.undo[component] {
		err := r.undoOne(ctx, component)
		if reason, _, isWait := deployerlib.AsWait(err); isWait {
			return reason, nil
		}
		if err != nil {
			return "", fmt.Errorf("component %s: %w", component, err)
		}
		r.target.RemoveFinalizer(component)
	}
	refs := r.refs[component]
	if len(refs) == 0 {
		return "", nil
	}
	waiting, err := r.target.Delete(ctx, refs)
	if err != nil {
		return "", fmt.Errorf("component %s: %w", component, err)
	}
	return apply.Report{Waiting: waiting}.Reason(), nil
}

// undoOne calls the Delete of a component, or the function that Builder.Removed sets for one that is gone.
func (r *removing) undoOne(ctx context.Context, component string) (err error) {
	defer recovered(&err)
	if place, present := r.graph.index[component]; present {
		if deleter := r.graph.nodes[place].deleter; deleter != nil {
			return deleter.Delete(r.walk.nodes[place].with(ctx))
		}
		return nil
	}
	undo := r.graph.removed[component]
	if undo == nil {
		return fmt.Errorf("it left the graph and has something to undo, but nothing says how: declare it with Removed(%q, …)", component)
	}
	return undo(r.walk.removedNode(component).with(ctx))
}

// removedNode returns a node for a component that the graph does not have. It requires nothing.
func (r *run) removedNode(component string) *Node {
	alone := &Graph{nodes: []node{{component: component}}, index: map[string]int{component: 0}, ancestors: [][]int{nil}}
	return &newRun(alone, r.item, r.session, r.target, r.log, 1).nodes[0]
}

// components returns all components that have something to remove.
func (r *removing) components() []string {
	var out []string
	for name := range r.refs {
		out = append(out, name)
	}
	for name := range r.undo {
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stored returns the requirements between components in the item's status.
func (r *removing) stored() map[string][]string {
	out := map[string][]string{}
	for _, entry := range r.target.Inventory().Entries {
		out[entry.Component] = append(out[entry.Component], entry.Requires...)
	}
	for _, owed := range r.status.Undo {
		out[owed.Name] = append(out[owed.Name], owed.Requires...)
	}
	for name := range out {
		slices.Sort(out[name])
		out[name] = slices.Compact(out[name])
	}
	return out
}

// waiting returns the components of a wave that are not gone.
func (r *removing) waiting(wave, reasons []string, errs []error) (left []ComponentStatus) {
	for i, name := range wave {
		switch {
		case errs[i] != nil:
			left = append(left, ComponentStatus{Name: name, State: StateFailed, Reason: line(errs[i].Error())})
		case reasons[i] != "":
			left = append(left, ComponentStatus{Name: name, State: StateRemoving, Reason: line(reasons[i])})
		}
	}
	return left
}

// behind returns the components that come after those that are not gone.
func (r *removing) behind(left []ComponentStatus, waves [][]string) (blocked []ComponentStatus) {
	var by []string
	for _, one := range left[:min(len(left), maxStatusBlockers)] {
		by = append(by, one.Name)
	}
	for _, wave := range waves {
		for _, name := range wave {
			blocked = append(blocked, ComponentStatus{Name: name, State: StateBlocked, BlockedBy: by})
		}
	}
	return blocked
}

// lookAgain is the time after which the next run checks whether something is gone, unless a watch reports it before.
const lookAgain = 2 * time.Second

// prunable reports whether what a component of the graph no longer keeps may be deleted. It may if the component and
// all that require it, directly or not, are ready without it.
func (w *walked) prunable(component string) bool {
	place, found := w.graph.index[component]
	if !found {
		return w.ready()
	}
	for i := range w.states {
		behind := slices.Contains(w.graph.ancestors[i], place)
		if (i == place || behind) && w.states[i].State != StateReady {
			return false
		}
	}
	return true
}

// relations returns the requirements between components when a graph meets what is stored about an item. The stored
// order has precedence, and the graph's order is for components that are not stored.
func (g *Graph) relations(stored map[string][]string) map[string][]string {
	all := make(map[string][]string, len(stored)+len(g.nodes))
	for i := range g.nodes {
		all[g.nodes[i].component] = g.names(g.nodes[i].requires)
	}
	maps.Copy(all, stored)
	return all
}

// recover finds the objects of an item whose inventory was lost by their labels.
func (c *call) recover(ctx context.Context) error {
	if c.run.Cluster == nil {
		return nil
	}
	return c.run.Recover(ctx, c.graph.kinds(), c.graph.complete)
}

// kinds returns the kinds of all objects that the graph may keep, as far as they are known before a run. Listing the
// whole cluster finds the namespaces.
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

// complete fills in to which component an object belongs, and what the graph records for that component.
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

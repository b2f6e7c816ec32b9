// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
	"github.com/deployerkit/deployerkit/upkeep"
)

// removing removes components group by group. See graph.Removal for the groups.
type removing struct {
	*call

	walk *run
	refs map[string][]apply.Ref // the objects to delete, by component
	undo map[string]bool        // the components whose Delete must be called
}

// removeLeft removes objects that are no longer desired. If the graph no longer contains the component of an object,
// removeLeft removes the object when all components are ready. Otherwise, it removes the object when the component and
// all components that require it, directly or indirectly, are ready. removeLeft returns the components whose removal is
// not complete.
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
			c.target.RemoveFinalizer(owed.Name) // the component still exists, but its Delete was removed from the code
		case !present && w.ready():
			r.undo[owed.Name] = true
		}
	}
	return r.remove(ctx)
}

// delete removes all objects of an item. It also calls the Delete of each component that the status lists in Undo.
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
	c.condition(lsv1alpha1.ConditionFalse, reasonRemoving, summary(left))
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

// connectToDelete connects to the target if the target may contain something to delete.
func (c *call) connectToDelete(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		c.run.ReportUnsearched()
	}
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

// remove removes the groups of components in order. If some components of a group still exist afterwards, it stops, and
// returns all components that still exist.
func (r *removing) remove(ctx context.Context) (left []ComponentStatus, err error) {
	waves := graph.Removal(r.graph.relations(r.target.Inventory().Entries, r.status.Undo), r.components())
	for i, wave := range waves {
		reasons, errs := make([]string, len(wave)), make([]error, len(wave))
		var group errgroup.Group
		group.SetLimit(r.options.Parallel)
		for i := range wave {
			group.Go(func() error {
				reasons[i], errs[i] = r.one(ctx, wave[i])
				return errs[i]
			})
		}
		_ = group.Wait() // all errors are in errs
		if left = r.waiting(wave, reasons, errs); len(left) == 0 {
			continue
		}
		return append(left, r.behind(left, waves[i+1:])...), errors.Join(errs...)
	}
	return nil, nil
}

// one removes the given component. It calls Delete before it deletes the objects, because Delete may need them. It
// returns the reason why the component still exists, or "" if the component is gone.
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

// undoOne calls the Delete of a component. If the graph no longer contains the component, undoOne calls the function
// that was passed to Builder.Removed.
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
		return fmt.Errorf("the component was removed from the graph, and no function deletes it; add one with Builder.Removed(%q, …)", component)
	}
	return undo(r.walk.removedNode(component).with(ctx))
}

// removedNode returns a node for a component that the graph no longer contains. The node has no requirements.
func (r *run) removedNode(component string) *nodeRun {
	alone := &Graph{nodes: []node{{component: component}}, index: map[string]int{component: 0}, ancestors: [][]int{nil}}
	return &newRun(alone, r.item, r.session, r.target, r.log, 1).nodes[0]
}

// components returns the names of all components to remove.
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

// relations returns the requirements of each component. If requirements of a component are stored with the item, they
// replace those in the graph.
func (g *Graph) relations(entries []apply.Entry, undo []UndoEntry) map[string][]string {
	out := map[string][]string{}
	for _, entry := range entries {
		out[entry.Component] = append(out[entry.Component], entry.Requires...)
	}
	for _, owed := range undo {
		out[owed.Name] = append(out[owed.Name], owed.Requires...)
	}
	for i := range g.nodes {
		node := &g.nodes[i]
		if _, stored := out[node.component]; !stored {
			out[node.component] = g.names(node.requires)
		}
	}
	return out
}

// waiting returns the states of those components of the group `wave` that still exist.
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

// behind returns the state Blocked for each component in the remaining groups `waves`. These components wait for the
// components in `left`.
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

// lookAgain is the time after which a run checks again whether objects are gone. If a watch reports the deletion of an
// object earlier, the run starts then.
const lookAgain = 2 * time.Second

// prunable reports whether objects that a component no longer returns may be deleted. This is the case when the
// component and all components that require it, directly or indirectly, are ready. If the graph no longer contains the
// component, all components must be ready.
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

// recover restores a lost inventory. It finds the objects of the item by their labels.
func (c *call) recover(ctx context.Context) error {
	if c.run.Cluster == nil {
		return nil
	}
	return c.run.Recover(ctx, upkeep.Search{Kinds: c.graph.kinds(), Complete: c.graph.complete})
}

// kinds returns the known kinds of the objects of all components. Some kinds are known only during a run, so they are
// missing. The value of each kind is a nil set of namespaces, which means all namespaces.
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

// complete sets the fields Component, Requires and Policy of an entry in a restored inventory.
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

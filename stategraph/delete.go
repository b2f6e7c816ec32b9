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
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

// remover removes components group by group. See graph.GroupForRemoval for the groups.
type remover struct {
	*call

	walk *run
	refs map[string][]apply.Ref // the objects to delete, by component
	undo map[string]bool        // the components whose Delete must be called
}

// pruneObjects removes objects that are no longer desired. If the graph no longer contains the component of an object,
// pruneObjects removes the object when all components are ready. Otherwise, it removes the object when the component
// and all components that require it, directly or indirectly, are ready. pruneObjects returns the components whose
// removal is not complete.
func (c *call) pruneObjects(ctx context.Context, walk *run, w *walkResult) ([]ComponentStatus, error) {
	if w.ended != nil {
		return nil, nil
	}
	r := &remover{call: c, walk: walk, refs: map[string][]apply.Ref{}, undo: map[string]bool{}}
	for _, entry := range c.target.ListUnclaimed() {
		if w.canPrune(entry.Component) {
			r.refs[entry.Component] = append(r.refs[entry.Component], entry.Ref())
		}
	}
	for _, owed := range slices.Clone(c.status.Undo) {
		place, present := c.graph.index[owed.Name]
		switch {
		case present && c.graph.nodes[place].deleter == nil:
			c.target.RemoveFinalizer(owed.Name) // the component still exists, but its Delete was removed from the code
		case !present && w.isReady():
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
	c.memory.Forget()
	r := &remover{call: c, refs: map[string][]apply.Ref{}, undo: map[string]bool{}}
	for _, entry := range c.status.Inventory.Entries {
		r.refs[entry.Component] = append(r.refs[entry.Component], entry.Ref())
	}
	for _, owed := range c.status.Undo {
		r.undo[owed.Name] = true
	}
	r.walk = c.prepareWalk(ctx)
	left, err := r.remove(ctx)
	c.status.Components, c.status.Omitted = left, 0
	c.setCondition(lsv1alpha1.ConditionFalse, reasonRemoving, formatSummary(left))
	if noteErr := c.run.SetInventory(c.target.Inventory()); noteErr != nil {
		return noteErr
	}
	switch {
	case err != nil:
		return c.run.ConvertApplyError(err)
	case len(left) > 0 && c.run.Cluster != nil:
		return c.run.NewWaitError("delete", 0, formatSummary(left), removalRecheckInterval)
	case len(left) > 0:
		return deployerlib.WaitFor(formatSummary(left), removalRecheckInterval)
	}
	if err := c.run.CleanUpFormerClusters(ctx, apply.Options{}, nil); err != nil {
		return err
	}
	if len(c.graph.exports) > 0 {
		if err := deployerlib.DeleteExport(ctx, c.manager.GetSecretClient(), c.item); err != nil {
			return err
		}
	}
	c.manager.Forget(c.item.UID)
	return nil
}

// connectToDelete connects to the target if the target may contain something to delete.
func (c *call) connectToDelete(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		c.run.RecordUnsearchedEvent()
	}
	stored := len(c.status.Inventory.Entries)+len(c.status.Inventory.Former) > 0
	if !stored && (target == nil || len(c.status.Undo) == 0 && !c.run.HasLostInventory()) {
		return nil
	}
	if err := c.run.Connect(ctx, target); err != nil {
		return err
	}
	if err := c.recoverInventory(ctx); err != nil {
		return err
	}
	c.run.Cluster.Watcher().Forget(c.item.UID)
	return nil
}

// remove removes the groups of components in order. If some components of a group still exist afterwards, it stops, and
// returns all components that still exist.
func (r *remover) remove(ctx context.Context) (left []ComponentStatus, err error) {
	waves := graph.GroupForRemoval(r.graph.mergeRequirements(r.target.Inventory().Entries, r.status.Undo), r.listComponents())
	for i, wave := range waves {
		reasons, errs := make([]string, len(wave)), make([]error, len(wave))
		var group errgroup.Group
		group.SetLimit(r.options.Concurrency)
		for i := range wave {
			group.Go(func() error {
				reasons[i], errs[i] = r.removeComponent(ctx, wave[i])
				return errs[i]
			})
		}
		_ = group.Wait() // all errors are in errs
		if left = r.newRemovingStatuses(wave, reasons, errs); len(left) == 0 {
			continue
		}
		return append(left, r.newBlockedStatuses(left, waves[i+1:])...), errors.Join(errs...)
	}
	return nil, nil
}

// removeComponent removes the given component. It calls Delete before it deletes the objects, because Delete may need
// them. It returns the reason why the component still exists, or "" if the component is gone.
func (r *remover) removeComponent(ctx context.Context, component string) (waits string, err error) {
	if r.undo[component] {
		err := r.deleteComponent(ctx, component)
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

// deleteComponent calls the Delete of a component. If the graph no longer contains the component, deleteComponent calls
// the function that was passed to Builder.AddRemoved.
func (r *remover) deleteComponent(ctx context.Context, component string) (err error) {
	defer recoverPanic(&err)
	if place, present := r.graph.index[component]; present {
		if deleter := r.graph.nodes[place].deleter; deleter != nil {
			return deleter.Delete(r.walk.nodes[place].newContext(ctx))
		}
		return nil
	}
	undo := r.graph.removed[component]
	if undo == nil {
		return fmt.Errorf("the component was removed from the graph, and no function deletes it; add one with Builder.AddRemoved(%q, …)", component)
	}
	return undo(r.walk.newRemovedNode(component).newContext(ctx))
}

// newRemovedNode returns a node for a component that the graph no longer contains. The node has no requirements.
func (r *run) newRemovedNode(component string) *nodeRun {
	alone := &Graph{nodes: []node{{component: component}}, index: map[string]int{component: 0}, ancestors: [][]int{nil}}
	return &newRun(alone, r.item, r.session, r.target, r.log, 1).nodes[0]
}

// listComponents returns the names of all components to remove.
func (r *remover) listComponents() []string {
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

// mergeRequirements returns the requirements of each component. If requirements of a component are stored with the
// item, they replace those in the graph.
func (g *Graph) mergeRequirements(entries []apply.Entry, undo []UndoEntry) map[string][]string {
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
			out[node.component] = g.toNames(node.requires)
		}
	}
	return out
}

// newRemovingStatuses returns the states of those components of the group `wave` that still exist.
func (r *remover) newRemovingStatuses(wave, reasons []string, errs []error) (left []ComponentStatus) {
	for i, name := range wave {
		switch {
		case errs[i] != nil:
			left = append(left, ComponentStatus{Name: name, State: StateFailed, Reason: toLine(errs[i].Error())})
		case reasons[i] != "":
			left = append(left, ComponentStatus{Name: name, State: StateRemoving, Reason: toLine(reasons[i])})
		}
	}
	return left
}

// newBlockedStatuses returns the state Blocked for each component in the remaining groups `waves`. These components
// wait for the components in `left`.
func (r *remover) newBlockedStatuses(left []ComponentStatus, waves [][]string) (blocked []ComponentStatus) {
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

// removalRecheckInterval is the time after which a run checks again whether objects are gone. If a watch reports the
// deletion of an object earlier, the run starts then.
const removalRecheckInterval = 2 * time.Second

// canPrune reports whether objects that a component no longer returns may be deleted. This is the case when the
// component and all components that require it, directly or indirectly, are ready. If the graph no longer contains the
// component, all components must be ready.
func (w *walkResult) canPrune(component string) bool {
	place, found := w.graph.index[component]
	if !found {
		return w.isReady()
	}
	for i := range w.states {
		behind := slices.Contains(w.graph.ancestors[i], place)
		if (i == place || behind) && w.states[i].State != StateReady {
			return false
		}
	}
	return true
}

// recoverInventory restores a lost inventory. It finds the objects of the item by their labels.
func (c *call) recoverInventory(ctx context.Context) error {
	if c.run.Cluster == nil {
		return nil
	}
	return c.run.RestoreInventory(ctx, managed.Search{Kinds: c.graph.listKinds(), Complete: c.graph.completeEntry})
}

// listKinds returns the known kinds of the objects of all components. Some kinds are known only during a run, so they
// are missing. The value of each kind is a nil set of namespaces, which means all namespaces.
func (g *Graph) listKinds() map[schema.GroupVersionKind]map[string]bool {
	out := map[schema.GroupVersionKind]map[string]bool{}
	for i := range g.nodes {
		if keeps, ok := g.nodes[i].resource.(*objectsResource); ok {
			for _, kind := range keeps.kinds {
				out[kind] = nil
			}
		}
	}
	return out
}

// completeEntry sets the fields Component, Requires and Policy of an entry in a restored inventory.
func (g *Graph) completeEntry(entry *apply.Entry, obj metav1.Object) {
	entry.Component = cmp.Or(obj.GetAnnotations()[LabelComponent], obj.GetLabels()[LabelComponent])
	place, present := g.index[entry.Component]
	if !present {
		return
	}
	entry.Requires = g.nodes[place].unit.Requires
	if keeps, ok := g.nodes[place].resource.(*objectsResource); ok && keeps.policy != apply.PolicyManage {
		entry.Policy = keeps.policy
	}
}

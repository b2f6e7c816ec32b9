// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/upkeep"
)

// inTarget is the session of one call: the item's objects in its target, and its inventory.
type inTarget struct {
	run     *upkeep.Run
	graph   *Graph
	status  *ProviderStatus
	memory  *memory
	applier *apply.Session // nil: the item has no target

	resources sync.Map // by GroupVersionKind: its resource

	claiming sync.Mutex         // guards the next three
	stored   bool               // the inventory was stored since the claim began
	broken   error              // it could not be
	names    map[apply.Ref]bool // of the inventory; nil: not known yet

	mu     sync.Mutex
	seen   map[apply.Ref]*unstructured.Unstructured // in this run
	owners map[watch.Object]string                  // the components that listen to objects
	// recheck is when an object may be ready though it does not change; 0: none.
	recheck time.Duration
}

// maxInventory leaves room for the rest of the provider status, which may have 1 MiB.
const maxInventory = 1<<20 - 256<<10

// newInTarget begins a session. Take must have been called.
func newInTarget(run *upkeep.Run, g *Graph, status *ProviderStatus, m *memory) *inTarget {
	t := &inTarget{run: run, graph: g, status: status, memory: m, seen: map[apply.Ref]*unstructured.Unstructured{}, owners: map[watch.Object]string{}}
	if run.Cluster == nil {
		return t
	}
	options := run.Options(apply.Options{MaxInventory: maxInventory})
	checkpoint := options.Checkpoint
	options.Checkpoint = func(ctx context.Context, inv apply.Inventory) error {
		err := checkpoint(ctx, inv)
		t.stored, t.broken = true, err // only a claim stores
		return err
	}
	t.applier = apply.New(run.Cluster.Client, run.Cluster.RESTMapper(), options).Session(run.Owner, run.Inventory)
	return t
}

// errNoTarget is why nothing can be applied.
func errNoTarget() error {
	return deployerlib.ConfigError("spec.target", "required: the components of the graph keep objects in a cluster")
}

// Claim stores what a component is about to write. If something of that is not stored yet, what is foreseen of others is stored
// with it. What is foreseen and cannot be claimed is left to its own turn.
func (t *inTarget) Claim(ctx context.Context, c claim, foresee func() []claim) error {
	t.claiming.Lock()
	defer t.claiming.Unlock()
	t.stored, t.broken = false, nil
	grows, owed := t.grows(c), t.owe(c)
	if !grows && !owed {
		return t.claimObjects(ctx, c)
	}
	all, owing := []claim{c}, []claim{}
	if owed {
		owing = append(owing, c)
	}
	for _, other := range foresee() {
		if t.owe(other) {
			owing = append(owing, other)
		}
		if t.grows(other) {
			all = append(all, other)
		}
	}
	err := t.claimObjects(ctx, all...)
	if err != nil && len(all) > 1 && t.broken == nil && ctx.Err() == nil {
		err = t.claimObjects(ctx, c)
	}
	if err == nil && len(owing) > 0 && !t.stored {
		t.broken = t.store(ctx)
		err = t.broken
	}
	if t.broken != nil {
		err = fmt.Errorf("store the inventory: %w", t.broken)
	}
	if err != nil {
		t.forgive(owing)
	}
	return err
}

// forgive notes that components have nothing to undo after all.
func (t *inTarget) forgive(owing []claim) {
	for _, c := range owing {
		t.undone(c.Component)
	}
}

// claimObjects adds the objects of claims to the inventory.
func (t *inTarget) claimObjects(ctx context.Context, claims ...claim) error {
	var all []apply.Desired
	for _, c := range claims {
		all = append(all, c.desired()...)
	}
	switch {
	case len(all) == 0:
		return nil
	case t.applier == nil:
		return errNoTarget()
	}
	return t.applier.Claim(ctx, all...)
}

// store stores the status of the item.
func (t *inTarget) store(ctx context.Context) error {
	if err := t.run.Note(t.inventory()); err != nil {
		return err
	}
	return deployerlib.Checkpoint(ctx)
}

// grows reports whether a claim has an object that the inventory does not.
func (t *inTarget) grows(c claim) bool {
	if t.names == nil {
		t.names = map[apply.Ref]bool{}
		for _, entry := range t.run.Inventory.Entries {
			t.names[withoutVersion(entry.Ref())] = true
		}
	}
	grows := false
	for _, d := range c.Desired {
		ref := withoutVersion(apply.RefOf(d.Object))
		grows = grows || !t.names[ref]
		t.names[ref] = true
	}
	return grows
}

// withoutVersion is what tells objects apart: versions of a group do not.
func withoutVersion(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// owe notes that a component has something to undo, if it has. It reports whether that is new.
func (t *inTarget) owe(c claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.Undo && t.status.owe(c.unit)
}

// desired are the objects of a claim, as the inventory shall know them.
func (c claim) desired() []apply.Desired { return c.own(c.Desired) }

// own notes on objects what they belong to.
func (u unit) own(desired []apply.Desired) []apply.Desired {
	out := make([]apply.Desired, len(desired))
	for i, d := range desired {
		d.Component, d.Requires = u.Component, u.Requires
		out[i] = d
	}
	return out
}

// Apply writes what is not known to be as desired.
func (t *inTarget) Apply(ctx context.Context, of unit, desired []apply.Desired) ([]apply.Outcome, error) {
	if t.applier == nil {
		return nil, errNoTarget()
	}
	applied, err := t.applier.Apply(ctx, of.own(desired)...)
	if len(applied) < len(desired) {
		return nil, err
	}
	heard := t.graph.watches(of.Component)
	for i := range applied {
		t.met(of.Component, applied[i], heard)
		applied[i].Live = nil // those who want it ask Get, so that it is known to be wanted
	}
	return applied, nil
}

// Delete deletes objects of the inventory.
func (t *inTarget) Delete(ctx context.Context, refs []apply.Ref) ([]apply.Waiting, error) {
	if t.applier == nil {
		return nil, errNoTarget()
	}
	waiting, err := t.applier.Delete(ctx, refs...)
	for _, w := range waiting {
		t.awaitEnd(w.Ref)
	}
	return waiting, err
}

// awaitEnd listens to an object that is on its way out, whatever its component listened to.
func (t *inTarget) awaitEnd(ref apply.Ref) {
	object, known := t.object(ref)
	if !known {
		return
	}
	seen, _ := t.run.Cluster.Watcher().Get(object.Resource, object.NamespacedName)
	t.memory.saw(object, seen.ResourceVersion, true)
}

// unclaimed are the entries of objects that no component of this walk wanted.
func (t *inTarget) unclaimed() []apply.Entry {
	if t.applier == nil {
		return t.run.Inventory.Entries
	}
	return t.applier.Unclaimed()
}

// undone notes that a component has nothing to undo any more.
func (t *inTarget) undone(component string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.undone(component)
}

// done counts the objects that were written or deleted.
func (t *inTarget) done() int {
	if t.applier == nil {
		return 0
	}
	report := t.applier.Report()
	return report.Applied + report.Deleted
}

// inventory is what the item has now.
func (t *inTarget) inventory() apply.Inventory {
	if t.applier == nil {
		return t.run.Inventory
	}
	return t.applier.Inventory()
}

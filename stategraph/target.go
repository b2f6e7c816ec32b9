// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
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

	mu     sync.Mutex
	stored bool                                     // the inventory was stored since the claims of a wave began
	broken error                                    // it could not be
	faults map[string]error                         // by component: its manifests
	seen   map[apply.Ref]*unstructured.Unstructured // in this run
	// recheck is when an object may be ready though it does not change; 0: none.
	recheck time.Duration
}

// maxInventory leaves room for the rest of the provider status, which may have 1 MiB.
const maxInventory = 1<<20 - 256<<10

// newInTarget begins a session. Take must have been called.
func newInTarget(run *upkeep.Run, g *Graph, status *ProviderStatus, m *memory) *inTarget {
	t := &inTarget{run: run, graph: g, status: status, memory: m, faults: map[string]error{}, seen: map[apply.Ref]*unstructured.Unstructured{}}
	if run.Cluster == nil {
		return t
	}
	options := run.Options(apply.Options{MaxInventory: maxInventory})
	checkpoint := options.Checkpoint
	options.Checkpoint = func(ctx context.Context, inv apply.Inventory) error {
		err := checkpoint(ctx, inv)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stored, t.broken = true, err
		return err
	}
	t.applier = apply.New(run.Cluster.Client, run.Cluster.RESTMapper(), options).Session(run.Owner, run.Inventory)
	return t
}

// errNoTarget is why nothing can be applied.
func errNoTarget() error {
	return deployerlib.ConfigError("spec.target", "required: the components of the graph keep objects in a cluster")
}

// Claim stores what is about to be written, for all components of a wave at once. When one of them has manifests that
// cannot be, the others are claimed one by one, and its Apply tells.
func (t *inTarget) Claim(ctx context.Context, claims []claim) error {
	t.stored, t.broken = false, nil
	owed := false
	var all []apply.Desired
	for _, c := range claims {
		if c.Undo {
			owed = t.status.owe(c.unit) || owed
		}
		all = append(all, c.desired()...)
	}
	if err := t.claim(ctx, claims, all); err != nil {
		return err
	}
	if !owed || t.stored {
		return nil
	}
	if err := t.run.Note(t.inventory()); err != nil {
		return err
	}
	return deployerlib.Checkpoint(ctx)
}

func (t *inTarget) claim(ctx context.Context, claims []claim, all []apply.Desired) error {
	switch {
	case len(all) == 0:
		return nil
	case t.applier == nil:
		return errNoTarget()
	}
	err := t.applier.Claim(ctx, all...)
	if err == nil || t.broken != nil || ctx.Err() != nil {
		return err
	}
	for _, c := range claims {
		if err := t.applier.Claim(ctx, c.desired()...); err != nil {
			t.faults[c.Component] = err
		}
		if t.broken != nil || ctx.Err() != nil {
			return errors.Join(t.broken, ctx.Err())
		}
	}
	return nil
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
func (t *inTarget) Apply(ctx context.Context, of unit, desired []apply.Desired) ([]outcome, error) {
	switch {
	case t.applier == nil:
		return nil, errNoTarget()
	case t.faults[of.Component] != nil:
		return nil, t.faults[of.Component]
	}
	applied, err := t.applier.Apply(ctx, of.own(desired)...)
	if len(applied) < len(desired) {
		return nil, err
	}
	heard := t.graph.hears(of.Component)
	out := make([]outcome, len(applied))
	for i, o := range applied {
		t.met(o, heard)
		out[i] = outcome(o)
		out[i].Live = nil // those who want it ask Get, so that it is known to be wanted
	}
	return out, nil
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

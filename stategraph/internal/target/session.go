// SPDX-License-Identifier: Apache-2.0

// Package target is what the run of an item does in its target: it keeps the objects of components and the inventory, and remembers
// from run to run what it has seen.
package target

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

// Unit is a component as the inventory remembers it.
type Unit struct {
	Component string
	// Requires are the components that must be there before this one, and go after it.
	Requires []string
}

// Claim is what a component is about to write.
type Claim struct {
	Unit
	Desired []apply.Desired
	// Undo reports that the component has a Delete of its own.
	Undo bool
}

// Judge returns why an object is not ready; it is empty when it is. It looks at nothing but the object.
type Judge func(live *unstructured.Unstructured) (reason string, err error)

// Undo is the record of the components of an item that have something to undo.
type Undo interface {
	// AddFinalizer notes that a component has something to undo. It reports whether that is new.
	AddFinalizer(of Unit) bool
	// RemoveFinalizer notes that a component has nothing to undo any more.
	RemoveFinalizer(component string)
}

// Session is the session of one call: the item's objects in its target, and its inventory.
type Session struct {
	run     *upkeep.Run
	undo    Undo
	watches func(component string) bool
	memory  *Memory
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

// New begins a session of a run whose Take was called. watches reports whether a component listens to its objects.
func New(run *upkeep.Run, undo Undo, watches func(component string) bool) *Session {
	t := &Session{run: run, undo: undo, watches: watches, memory: MemoryOf(run), seen: map[apply.Ref]*unstructured.Unstructured{}, owners: map[watch.Object]string{}}
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
func (t *Session) Claim(ctx context.Context, c Claim, foresee func() []Claim) error {
	t.claiming.Lock()
	defer t.claiming.Unlock()
	t.stored, t.broken = false, nil
	grows, owed := t.grows(c), t.addFinalizer(c)
	if !grows && !owed {
		return t.claimObjects(ctx, c)
	}
	all, owing := []Claim{c}, []Claim{}
	if owed {
		owing = append(owing, c)
	}
	for _, other := range foresee() {
		if t.addFinalizer(other) {
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
func (t *Session) forgive(owing []Claim) {
	for _, c := range owing {
		t.RemoveFinalizer(c.Component)
	}
}

// claimObjects adds the objects of claims to the inventory.
func (t *Session) claimObjects(ctx context.Context, claims ...Claim) error {
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
func (t *Session) store(ctx context.Context) error {
	if err := t.run.Note(t.Inventory()); err != nil {
		return err
	}
	return deployerlib.Checkpoint(ctx)
}

// grows reports whether a claim has an object that the inventory does not.
func (t *Session) grows(c Claim) bool {
	if t.names == nil {
		t.names = map[apply.Ref]bool{}
		for _, entry := range t.run.Inventory.Entries {
			t.names[WithoutVersion(entry.Ref())] = true
		}
	}
	grows := false
	for _, d := range c.Desired {
		ref := WithoutVersion(apply.RefOf(d.Object))
		grows = grows || !t.names[ref]
		t.names[ref] = true
	}
	return grows
}

// WithoutVersion is what tells objects apart: versions of a group do not.
func WithoutVersion(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// addFinalizer notes that a component has something to undo, if it has. It reports whether that is new.
func (t *Session) addFinalizer(c Claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.Undo && t.undo.AddFinalizer(c.Unit)
}

// desired are the objects of a claim, as the inventory shall know them.
func (c Claim) desired() []apply.Desired { return c.own(c.Desired) }

// own notes on objects what they belong to.
func (u Unit) own(desired []apply.Desired) []apply.Desired {
	out := make([]apply.Desired, len(desired))
	for i, d := range desired {
		d.Component, d.Requires = u.Component, u.Requires
		out[i] = d
	}
	return out
}

// Apply writes what is not known to be as desired.
func (t *Session) Apply(ctx context.Context, of Unit, desired []apply.Desired) ([]apply.Outcome, error) {
	if t.applier == nil {
		return nil, errNoTarget()
	}
	applied, err := t.applier.Apply(ctx, of.own(desired)...)
	if len(applied) < len(desired) {
		return nil, err
	}
	heard := t.watches(of.Component)
	for i := range applied {
		t.met(of.Component, applied[i], heard)
		applied[i].Live = nil // those who want it ask Get, so that it is known to be wanted
	}
	return applied, nil
}

// Delete deletes objects of the inventory.
func (t *Session) Delete(ctx context.Context, refs []apply.Ref) ([]apply.Waiting, error) {
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
func (t *Session) awaitEnd(ref apply.Ref) {
	object, known := t.object(ref)
	if !known {
		return
	}
	seen, _ := t.run.Cluster.Watcher().Get(object.Resource, object.NamespacedName)
	t.memory.saw(object, seen.ResourceVersion, true)
}

// Unclaimed are the entries of objects that no component of this walk wanted.
func (t *Session) Unclaimed() []apply.Entry {
	if t.applier == nil {
		return t.run.Inventory.Entries
	}
	return t.applier.Unclaimed()
}

// RemoveFinalizer notes that a component has nothing to undo any more.
func (t *Session) RemoveFinalizer(component string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undo.RemoveFinalizer(component)
}

// Done counts the objects that were written or deleted.
func (t *Session) Done() int {
	if t.applier == nil {
		return 0
	}
	report := t.applier.Report()
	return report.Applied + report.Deleted
}

// Inventory is what the item has now.
func (t *Session) Inventory() apply.Inventory {
	if t.applier == nil {
		return t.run.Inventory
	}
	return t.applier.Inventory()
}

// Owned returns what the watches of the target are to expect.
func (t *Session) Owned() []apply.Owned { return t.applier.Report().Owned }

// Recheck returns when an object may be ready though it does not change; 0 means that there is none.
func (t *Session) Recheck() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recheck
}

// SPDX-License-Identifier: Apache-2.0

// Package target does what the run of an item does in its target. It keeps the objects of components and the inventory,
// and remembers from run to run what it has seen.
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
	// Requires are the components that must exist before this one, and are removed after it.
	Requires []string
}

// Claim is what a component is about to write.
type Claim struct {
	Unit
	Desired []apply.Desired
	// Undo means that the component has its own Delete.
	Undo bool
}

// Judge returns why an object is not ready, or "" if it is ready. The result depends on nothing but the object.
type Judge func(live *unstructured.Unstructured) (reason string, err error)

// Undo records which components of an item have something to undo.
type Undo interface {
	// AddFinalizer records that a component has something to undo. It reports whether that is new.
	AddFinalizer(of Unit) bool
	// RemoveFinalizer records that a component has nothing to undo any more.
	RemoveFinalizer(component string)
}

// Session is the session of one call. It holds the item's objects in its target, and its inventory.
type Session struct {
	run     *upkeep.Run
	undo    Undo
	watches func(component string) bool
	memory  *Memory
	applier *apply.Session // nil if the item has no target

	resources sync.Map // by GroupVersionKind, its resource

	claiming sync.Mutex         // guards the next three
	stored   bool               // the inventory was stored since the claim began
	broken   error              // it could not be stored
	names    map[apply.Ref]bool // in the inventory, or nil if not known yet

	mu     sync.Mutex
	seen   map[apply.Ref]*unstructured.Unstructured // in this run
	owners map[watch.Object]string                  // the components that listen to objects
	// recheck is when an object may be ready although it does not change. Zero means that there is none.
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

// errNoTarget returns the error of an item without a target.
func errNoTarget() error {
	return deployerlib.ConfigError("spec.target", "required: the components of the graph keep objects in a cluster")
}

// Claim stores what a component is about to write. If something of that is not stored yet, what is foreseen of others
// is stored with it. If something is foreseen but cannot be claimed, it is left to its own turn.
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

// forgive records that components have nothing to undo after all.
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

// grows reports whether a claim has an object that is not in the inventory.
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

// WithoutVersion returns the reference without the API version, which does not distinguish objects.
func WithoutVersion(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// addFinalizer records that a component has something to undo, if it has. It reports whether that is new.
func (t *Session) addFinalizer(c Claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.Undo && t.undo.AddFinalizer(c.Unit)
}

// desired returns the objects of a claim with what the inventory must record about them.
func (c Claim) desired() []apply.Desired { return c.own(c.Desired) }

// own records on objects which component they belong to.
func (u Unit) own(desired []apply.Desired) []apply.Desired {
	out := make([]apply.Desired, len(desired))
	for i, d := range desired {
		d.Component, d.Requires = u.Component, u.Requires
		out[i] = d
	}
	return out
}

// Apply writes the objects that are not known to be as desired.
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
		applied[i].Live = nil // callers that need it use Get, so that the need is known
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

// awaitEnd listens to an object that is being deleted, even if its component does not listen to it.
func (t *Session) awaitEnd(ref apply.Ref) {
	object, known := t.object(ref)
	if !known {
		return
	}
	seen, _ := t.run.Cluster.Watcher().Get(object.Resource, object.NamespacedName)
	t.memory.saw(object, seen.ResourceVersion, true)
}

// Unclaimed returns the entries of objects that no component of this walk wanted.
func (t *Session) Unclaimed() []apply.Entry {
	if t.applier == nil {
		return t.run.Inventory.Entries
	}
	return t.applier.Unclaimed()
}

// RemoveFinalizer records that a component has nothing to undo any more.
func (t *Session) RemoveFinalizer(component string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undo.RemoveFinalizer(component)
}

// Done returns the number of objects that were written or deleted.
func (t *Session) Done() int {
	if t.applier == nil {
		return 0
	}
	report := t.applier.Report()
	return report.Applied + report.Deleted
}

// Inventory returns what the item has now.
func (t *Session) Inventory() apply.Inventory {
	if t.applier == nil {
		return t.run.Inventory
	}
	return t.applier.Inventory()
}

// Owned returns the objects that the watches of the target must expect.
func (t *Session) Owned() []apply.Owned { return t.applier.Report().Owned }

// Recheck returns when an object may be ready although it does not change. Zero means that there is none.
func (t *Session) Recheck() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recheck
}

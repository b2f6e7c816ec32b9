// SPDX-License-Identifier: Apache-2.0

// Package target applies and reads the objects of components in the target cluster of an item. It maintains the
// inventory, and keeps data about the objects in memory between runs.
package target

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// Unit identifies a component in the inventory.
type Unit struct {
	Component string
	// Requires lists the components that this component requires. These components are created before this component, and
	// removed after it.
	Requires []string
}

// Claim contains the objects that a component is about to write.
type Claim struct {
	Unit
	Desired []apply.Desired
	// Undo is true if the component has a Delete.
	Undo bool
}

// ReadinessFunc returns the reason why an object is not ready, or "" if it is ready. The result depends only on the
// object.
type ReadinessFunc func(live *unstructured.Unstructured) (reason string, err error)

// Undo is a record of the components whose Delete must be called when the item is deleted.
type Undo interface {
	// AddFinalizer adds a component to the record. It reports whether the component is new.
	AddFinalizer(of Unit) bool
	// RemoveFinalizer removes a component from the record.
	RemoveFinalizer(component string)
}

// Session is the access of one run to the target of its item. It applies and reads objects, and maintains the
// inventory.
type Session struct {
	run     *managed.Run
	undo    Undo
	watches func(component string) bool
	memory  *Memory
	applier *apply.Session // nil if the item has no target

	resources sync.Map // maps each GroupVersionKind to its resource

	claimMu  sync.Mutex         // guards the fields stored, broken and names
	stored   bool               // the current call of Claim tried to store the inventory
	storeErr error              // the error of the attempt to store the inventory, or nil
	names    map[apply.Ref]bool // the objects in the inventory, or nil if they are not known yet

	mu     sync.Mutex
	seen   map[apply.Ref]*unstructured.Unstructured // the objects that this run has read
	owners map[observe.Object]string                // maps an object to the component that applied it and listens to it
	// recheckAfter is the time after which the readiness of an object must be checked again, even if the object has not
	// changed. Zero means that no object needs this.
	recheckAfter time.Duration
}

// maxInventory is the maximum size of an inventory, in bytes. The whole provider status may have 1 MiB, so the limit
// leaves room for the other fields of the status.
const maxInventory = 1<<20 - 256<<10

// New returns a session for a run. Call managed.Run.TakeTriggers before New. The function `watches` reports whether a
// component listens to its objects.
func New(run *managed.Run, undo Undo, watches func(component string) bool) *Session {
	t := &Session{run: run, undo: undo, watches: watches, memory: GetMemory(run), seen: map[apply.Ref]*unstructured.Unstructured{}, owners: map[observe.Object]string{}}
	if run.Cluster == nil {
		return t
	}
	options := run.CompleteOptions(run.Cluster, apply.Options{MaxInventory: maxInventory})
	checkpoint := options.Checkpoint
	options.Checkpoint = func(ctx context.Context, inv apply.Inventory) error {
		err := checkpoint(ctx, inv)
		t.stored, t.storeErr = true, err // only Claim stores the inventory
		return err
	}
	t.applier = run.Cluster.NewEngine(options).NewSession(run.Owner, run.Inventory)
	return t
}

// errNoTarget returns the error for an item that needs a target and has none.
func errNoTarget() error {
	return deployerlib.NewConfigError("spec.target", "required, because the components of the graph have objects in the target")
}

// Claim adds the objects of a claim to the inventory. If an object is new, or the component has a Delete that is not
// recorded yet, Claim also adds the objects and records the Deletes of the claims that `foresee` returns, and then
// stores the inventory. If the additional objects cause an error, Claim leaves them out. This is safe, because each
// component calls Claim for its objects before it writes them.
func (t *Session) Claim(ctx context.Context, c Claim, foresee func() []Claim) error {
	t.claimMu.Lock()
	defer t.claimMu.Unlock()
	t.stored, t.storeErr = false, nil
	grows, owed := t.addNames(c), t.addFinalizer(c)
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
		if t.addNames(other) {
			all = append(all, other)
		}
	}
	err := t.claimObjects(ctx, all...)
	if err != nil && len(all) > 1 && t.storeErr == nil && ctx.Err() == nil {
		err = t.claimObjects(ctx, c)
	}
	if err == nil && len(owing) > 0 && !t.stored {
		t.storeErr = t.storeStatus(ctx)
		err = t.storeErr
	}
	if t.storeErr != nil {
		err = fmt.Errorf("store the inventory: %w", t.storeErr)
	}
	if err != nil {
		t.removeFinalizers(owing)
	}
	return err
}

// removeFinalizers undoes addFinalizer for the given claims. Claim calls it before it returns an error.
func (t *Session) removeFinalizers(owing []Claim) {
	for _, c := range owing {
		t.RemoveFinalizer(c.Component)
	}
}

// claimObjects adds the objects of claims to the inventory.
func (t *Session) claimObjects(ctx context.Context, claims ...Claim) error {
	var all []apply.Desired
	for _, c := range claims {
		all = append(all, c.toDesired()...)
	}
	switch {
	case len(all) == 0:
		return nil
	case t.applier == nil:
		return errNoTarget()
	}
	return t.applier.Claim(ctx, all...)
}

// storeStatus stores the status of the item.
func (t *Session) storeStatus(ctx context.Context) error {
	if err := t.run.SetInventory(t.Inventory()); err != nil {
		return err
	}
	return deployerlib.Checkpoint(ctx)
}

// addNames reports whether a claim contains an object that is not in the inventory yet.
func (t *Session) addNames(c Claim) bool {
	if t.names == nil {
		t.names = map[apply.Ref]bool{}
		for _, entry := range t.run.Inventory.Entries {
			t.names[WithoutVersion(entry.Ref())] = true
		}
	}
	grows := false
	for _, d := range c.Desired {
		ref := WithoutVersion(apply.ToRef(d.Object))
		grows = grows || !t.names[ref]
		t.names[ref] = true
	}
	return grows
}

// WithoutVersion returns the reference without the API version. Two references to the same object may have different
// API versions.
func WithoutVersion(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// addFinalizer records that Delete must be called for the component of a claim, if the component has a Delete. It
// reports whether this is new.
func (t *Session) addFinalizer(c Claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.Undo && t.undo.AddFinalizer(c.Unit)
}

// toDesired returns copies of c.Desired, with the fields Component and Requires set.
func (c Claim) toDesired() []apply.Desired { return c.setUnit(c.Desired) }

// setUnit returns a copy of `desired`, with the fields Component and Requires set in each element.
func (u Unit) setUnit(desired []apply.Desired) []apply.Desired {
	out := make([]apply.Desired, len(desired))
	for i, d := range desired {
		d.Component, d.Requires = u.Component, u.Requires
		out[i] = d
	}
	return out
}

// Apply writes the given objects, except those that are known to be up to date.
func (t *Session) Apply(ctx context.Context, of Unit, desired []apply.Desired) ([]apply.ApplyResult, error) {
	if t.applier == nil {
		return nil, errNoTarget()
	}
	applied, err := t.applier.Apply(ctx, of.setUnit(desired)...)
	if len(applied) < len(desired) {
		return nil, err
	}
	listened := t.watches(of.Component)
	for i := range applied {
		t.recheckUntilServed(applied[i].NotServed)
		t.recordApplied(of.Component, applied[i], listened)
		applied[i].Live = nil // callers must use Get, which stores the object for the next run
	}
	return applied, nil
}

// Delete deletes objects that are in the inventory.
func (t *Session) Delete(ctx context.Context, refs []apply.Ref) ([]apply.Waiting, error) {
	if t.applier == nil {
		return nil, errNoTarget()
	}
	waiting, err := t.applier.Delete(ctx, refs...)
	for _, w := range waiting {
		t.recheckUntilServed(w.NotServed)
		t.watchDeletion(w.Ref)
	}
	return waiting, err
}

// recheckUntilServed ensures that an object which the cluster does not serve at the moment is tried again. No watch
// reports when this changes.
func (t *Session) recheckUntilServed(unserved bool) {
	if !unserved {
		return
	}
	pause := t.run.UnservedPollInterval()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recheckAfter == 0 || pause < t.recheckAfter {
		t.recheckAfter = pause
	}
}

// watchDeletion ensures that a run is triggered when the object no longer exists, even if the component does not listen
// to the object.
func (t *Session) watchDeletion(ref apply.Ref) {
	object, known := t.toObject(ref)
	if !known {
		return
	}
	seen, _ := t.run.Cluster.Watcher().Get(object.Resource, object.NamespacedName)
	t.memory.recordSeen(object, seen.Version(), true)
}

// ListUnclaimed returns the inventory entries of objects that no component has claimed in this run.
func (t *Session) ListUnclaimed() []apply.Entry {
	if t.applier == nil {
		return t.run.Inventory.Entries
	}
	return t.applier.ListUnclaimed()
}

// RemoveFinalizer removes a component from the record of components whose Delete must be called.
func (t *Session) RemoveFinalizer(component string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undo.RemoveFinalizer(component)
}

// ChangedObjects returns the number of objects that this session has written or deleted.
func (t *Session) ChangedObjects() int {
	if t.applier == nil {
		return 0
	}
	report := t.applier.Report()
	return report.Applied + report.Deleted
}

// Inventory returns the current inventory.
func (t *Session) Inventory() apply.Inventory {
	if t.applier == nil {
		return t.run.Inventory
	}
	return t.applier.Inventory()
}

// ListOwned returns the objects that the item owns, for the watches of the target.
func (t *Session) ListOwned() []observe.BaselineObject { return t.applier.Report().Owned }

// GetRecheckAfter returns the time after which the readiness of an object must be checked again, even if the object has
// not changed. Zero means that no object needs this.
func (t *Session) GetRecheckAfter() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recheckAfter
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/memo"
)

// Session applies and deletes the objects of one item step by step, in an order that the caller determines. It has no
// stages, and only its method Delete deletes objects. Its methods may be called from several goroutines. Calls for the
// same object run one after the other. Use a Session only for one run of the item. For the next run, create a new
// Session with the stored inventory.
type Session struct {
	run     *run
	claimed memo.Memo[*unstructured.Unstructured, Desired, *desiredObject] // the objects that Claim prepared, until they are applied
}

// NewSession returns a Session that starts with the inventory of the item. It sends no requests and stores nothing yet.
func (e *Engine) NewSession(owner ownership.Owner, inv Inventory) *Session {
	return &Session{run: e.begin(owner, inv)}
}

// ApplyResult is the result of Session.Apply for one object.
type ApplyResult struct {
	Ref Ref
	// Live is the object in the API server's answer. It is nil if no request was necessary, or if the answer contained
	// no object, for example after a deletion or an error. If the engine left the object unchanged because it belongs
	// to another owner, Live is the object as it was read.
	Live *unstructured.Unstructured
	// Changed reports whether the object was changed, created or deleted. Changed is also true if the engine does not
	// know whether a write had an effect.
	Changed bool
	// WaitMessage is the reason why the object is unfinished. It is empty if the object is finished.
	WaitMessage string
	// NotServed means that the object is unfinished because the cluster does not serve it at the moment. No watch reports
	// when this changes.
	NotServed bool
	// Err is an *Error if the object failed, and nil otherwise.
	Err error
}

// Claim adds objects to the inventory without writing the objects. It stores the inventory once for all new objects, so
// that Apply need not store it for each object.
//
// Claim returns an *Error or Errors for invalid manifests, for lists, and for objects that another component has
// claimed. It may also return the error of Options.Checkpoint or the error of an ended context. After an error, none of
// the objects is claimed.
//
// Apply reuses the result of Claim for the same Desired. The caller must therefore not modify a manifest between Claim
// and Apply.
func (s *Session) Claim(ctx context.Context, desired ...Desired) error {
	objects, err := s.claim(ctx, desired)
	for i, o := range objects {
		if o.unserved != nil {
			continue // the kind may be known when the object is applied
		}
		s.claimed.Put(desired[i].Object, desired[i], o)
	}
	return err
}

// claim adds the objects to the inventory, if necessary, and returns them. If Session.Claim has already prepared all of
// the objects, claim returns the prepared objects. Otherwise it prepares all of them.
func (s *Session) claim(ctx context.Context, desired []Desired) (objects []*desiredObject, err error) {
	seen := make(map[Ref]bool, len(desired))
	for _, d := range desired {
		o, found := s.claimed.Get(d.Object, d)
		if !found || seen[toID(o.ref)] {
			if objects, err = s.run.prepare(ctx, desired, true); err != nil {
				return nil, err
			}
			break
		}
		objects, seen[toID(o.ref)] = append(objects, o), true
	}
	return objects, s.run.objects.claim(ctx, objects, s.run.options)
}

// Apply claims the objects that are not claimed yet. It then writes the objects, except those that are known to be
// unchanged. It writes at most Options.Concurrency objects at a time, and starts them in the given order, except that
// it writes webhook configurations and APIServices after all others, because one of these may be their server. The
// results are in the order of the objects.
//
// The error contains the errors of all results. An object that is only waiting is not an error. If the objects cannot
// be claimed, Apply writes nothing and returns the error of Claim without results. If the context ends, the result for
// each object that was not written contains the error of the context.
func (s *Session) Apply(ctx context.Context, desired ...Desired) ([]ApplyResult, error) {
	objects, err := s.claim(ctx, desired)
	if err != nil {
		return nil, err
	}
	for _, d := range desired {
		s.claimed.Forget(d.Object)
	}
	r := s.run
	r.watch(ctx, objects)
	out := make([]ApplyResult, len(objects))
	errs := make(Errors, len(objects))
	places := map[*desiredObject]int{}
	for i, o := range objects {
		places[o] = i
	}
	isEarly := func(o *desiredObject) bool {
		return getStage(o.ref.GVK().GroupKind(), o.kind.namespaced) != stageServed
	}
	for _, batch := range splitFirst(objects, isEarly) {
		forEach(ctx, r.options.Concurrency, batch, func(_ int, o *desiredObject) { out[places[o]], errs[places[o]] = r.apply(ctx, o) })
	}
	for i, o := range objects {
		if out[i].Ref == (Ref{}) { // not started
			out[i] = ApplyResult{Ref: o.ref, Err: r.results.newStoppedError(ctx, o.ref)}
		}
	}
	return out, r.results.joinErrors(ctx, errs)
}

// Delete deletes objects of the inventory. It deletes at most Options.Concurrency objects at a time, and starts them in
// the given order. It returns the objects that are not known to be gone yet. If there are any, call Delete again, at
// the latest after the time that Report.RetryAfter returns.
//
// An object is removed from the inventory when it is known to be gone. Objects with PolicyKeep and PolicyIgnore are
// removed from the inventory at once and stay in the cluster. The same applies to objects that were claimed under
// another API group. An object that the inventory does not contain counts as gone. As with Engine.Delete, the error
// contains the errors of all objects.
func (s *Session) Delete(ctx context.Context, refs ...Ref) ([]Waiting, error) {
	r := s.run
	var errs Errors
	var waits []Waiting
	for _, batch := range splitFirst(refs, func(ref Ref) bool { return r.objects.get(ref).Aggregates }) {
		if len(waits)+len(errs) > 0 {
			for _, ref := range batch {
				waits = append(waits, Waiting{Ref: ref, Message: "is deleted after the objects that are filled from it"})
			}
			break
		}
		failed, left := make(Errors, len(batch)), make([]Waiting, len(batch))
		forEach(ctx, r.options.Concurrency, batch, func(i int, ref Ref) { failed[i], left[i] = r.deleteObject(ctx, ref) })
		errs = append(errs, slices.DeleteFunc(failed, func(e *Error) bool { return e == nil })...)
		waits = append(waits, slices.DeleteFunc(left, func(w Waiting) bool { return w.Message == "" })...)
	}
	return waits, r.results.joinErrors(ctx, errs)
}

// GetFinish returns the Finish of an object of the inventory. It returns "" for other objects.
func (s *Session) GetFinish(ref Ref) Finish { return s.run.objects.get(ref).Finish }

// RecordFinish records the Finish of a live object that the caller has read, if the inventory contains the object.
func (s *Session) RecordFinish(live *unstructured.Unstructured) {
	s.run.objects.updateEntry(ToRef(live), func(e *object.Record) {
		if !e.Gone && e.UID == live.GetUID() {
			e.Finish = GetFinish(live)
		}
	})
}

// Inventory returns the current inventory. The caller must store it, even after an error.
func (s *Session) Inventory() Inventory { return s.run.objects.inventory() }

// ListUnclaimed returns the inventory entries of the objects that were not claimed in this Session, in a fixed order.
// When all desired objects have been claimed, these are the objects that are no longer desired. The caller can pass
// their references to Delete.
func (s *Session) ListUnclaimed() []Entry {
	var out []Entry
	for _, one := range s.run.objects.all() {
		if !one.Claimed {
			out = append(out, one.Entry)
		}
	}
	return out
}

// Report describes the results so far, and the objects that are unfinished now. Report.Owned covers the whole
// inventory, including objects that were not applied in this Session.
func (s *Session) Report() Report {
	out := s.run.results.toReport()
	out.Owned = s.run.objects.listOwned(s.run.kinds)
	return out
}

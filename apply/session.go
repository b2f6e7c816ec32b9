// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// Session applies and deletes the objects of one item step by step, in the order of its caller. There are no stages,
// and nothing is deleted except by Delete. Its methods may be called from several goroutines; two calls for the same
// object run one after the other. A Session serves one run of the item. For the next run, make a new one with the
// stored inventory.
type Session struct {
	run *run
}

// Session returns a Session that begins with the inventory of the item. It makes no call and stores nothing yet.
func (e *Engine) Session(owner ownership.Owner, inv Inventory) *Session {
	return &Session{run: e.newRun(owner, inv, redact.New(shortestSecret, e.options.Hide...))}
}

// Outcome is the result for one object.
type Outcome struct {
	Ref Ref
	// Live is the object in the API server's answer. It is nil if nothing was sent, because a watch or the policy
	// made it unnecessary, or if the answer contained no object, as after a deletion or an error. It may belong to
	// another owner if the policy leaves that object alone.
	Live *unstructured.Unstructured
	// Changed reports that something was written or deleted, or that it is not known whether the write changed
	// anything.
	Changed bool
	// Waiting is the reason why the object is not finished. It is empty if the object is finished.
	Waiting string
	// Err is an *Error if the object failed, and nil otherwise.
	Err error
}

// Claim adds objects to the inventory, and stores it once if it grew, so that Apply need not store it for each
// object. Claim writes no objects. It returns the faults of the manifests (an *Error or Errors; lists are refused, as
// is an object that another component has claimed), the error of Options.Checkpoint, or that of an ended context.
// After an error, none of the objects is claimed.
func (s *Session) Claim(ctx context.Context, desired ...Desired) error {
	_, err := s.claim(ctx, desired)
	return err
}

func (s *Session) claim(ctx context.Context, desired []Desired) ([]*object, error) {
	objects, err := s.prepare(ctx, desired)
	if err != nil {
		return nil, err
	}
	return objects, s.run.claim(ctx, objects)
}

// prepare uses the kinds that manifests of earlier calls define, and hides the values of their Secrets.
func (s *Session) prepare(ctx context.Context, desired []Desired) ([]*object, error) {
	p := s.run.preparing(s.run.owner)
	p.singly = true
	s.run.lend(p)
	objects, err := p.objects(ctx, p.expand(desired))
	s.run.learn(p)
	return objects, err
}

// Apply claims the objects that are not claimed yet, and writes those that are not known to be unchanged,
// Options.Concurrency at a time, started in the order given. It returns the outcomes in that order. The error
// contains the errors of the outcomes; an object that is only waiting is not an error. If there are no outcomes, the
// error is one of Claim, and nothing was written. After the context ends, objects that were not written have its
// error.
func (s *Session) Apply(ctx context.Context, desired ...Desired) ([]Outcome, error) {
	objects, err := s.claim(ctx, desired)
	if err != nil {
		return nil, err
	}
	r := s.run
	r.watch(ctx, objects)
	out := make([]Outcome, len(objects))
	errs := make(Errors, len(objects))
	begun := make([]bool, len(objects))
	forEach(ctx, r.options.Concurrency, places(len(objects)), func(i int) {
		begun[i] = true
		out[i], errs[i] = r.one(ctx, objects[i])
	})
	for i, o := range objects {
		if !begun[i] {
			out[i] = Outcome{Ref: o.ref, Err: r.stopped(ctx, o.ref)}
		}
	}
	errs = slices.DeleteFunc(errs, func(e *Error) bool { return e == nil })
	return out, r.joined(ctx, errs)
}

// places returns the numbers from 0 to n-1.
func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Delete deletes objects of the inventory, Options.Concurrency at a time, started in the order given. An entry leaves
// the inventory when its object is known to be gone. Until then the object is among the waiting ones, and the caller
// calls again, at the latest after Report.After. Objects with the policies Keep and Ignore are released at once. An
// object that the inventory does not contain counts as gone. An object that was claimed in another API group stays,
// and only the entry is removed. Errors are those of single objects, as with Engine.Delete.
func (s *Session) Delete(ctx context.Context, refs ...Ref) ([]Waiting, error) {
	r := s.run
	errs := make(Errors, len(refs))
	waits := make([]Waiting, len(refs))
	forEach(ctx, r.options.Concurrency, places(len(refs)), func(i int) {
		r.on(refs[i], func(sl *slot) {
			errs[i] = r.sort(refs[i], r.dismiss(ctx, sl))
			waits[i] = Waiting{Ref: refs[i], Reason: r.waitsFor(refs[i])}
		})
	})
	errs = slices.DeleteFunc(errs, func(e *Error) bool { return e == nil })
	waits = slices.DeleteFunc(waits, func(w Waiting) bool { return w.Reason == "" })
	return waits, r.joined(ctx, errs)
}

// dismiss deletes the object of an entry, unless only the entry has to be removed.
func (r *run) dismiss(ctx context.Context, s *slot) error {
	switch {
	case s.gone:
		return nil
	case s.isLetGo() || r.hasUnderOtherName(s):
		s.gone = true
		return nil
	}
	return r.removeOne(ctx, s, false)
}

// hasUnderOtherName reports whether the object was claimed in another API group.
func (r *run) hasUnderOtherName(s *slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, other := range r.book {
		if other.claimed && !other.gone && s.UID != "" && other.UID == s.UID && id != s.Ref().id() {
			return true
		}
	}
	return false
}

// Inventory returns the current inventory. It must be stored even after an error.
func (s *Session) Inventory() Inventory {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.run.book.inventory()
}

// Unclaimed returns the entries that were not claimed in this Session, in a fixed order. They are to be deleted when
// all desired objects have been claimed.
func (s *Session) Unclaimed() []Entry {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	var out []Entry
	for _, one := range s.run.all() {
		if !one.claimed {
			out = append(out, one.Entry)
		}
	}
	return out
}

// Report describes what was done so far, what is unfinished now, and how a watch should see the objects of the whole
// inventory, including those that were not applied in this Session.
func (s *Session) Report() Report {
	s.run.locate()
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.run.reported()
}

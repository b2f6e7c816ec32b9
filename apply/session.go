// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// Session applies and deletes the objects of one item step by step, in the order of its caller: there are no stages, and
// nothing is deleted but by Delete. Its methods may be called by several goroutines; two that want the same object come one
// after the other. It serves one run of the item: make a new one with the stored inventory for the next.
type Session struct {
	run *run
}

// Session begins with the inventory that the item has. It asks nothing and stores nothing yet.
func (e *Engine) Session(owner ownership.Owner, inv Inventory) *Session {
	return &Session{run: e.newRun(owner, inv, redact.New(shortestSecret, e.options.Hide...))}
}

// Outcome is what became of one object.
type Outcome struct {
	Ref Ref
	// Live is what the API server answered about the object. nil: nothing was sent, because a watch or the policy says so; or
	// there was no answer with an object, as after a deletion or an error. It may be the object of somebody else, if the
	// policy leaves that alone.
	Live *unstructured.Unstructured
	// Changed: something was written or deleted, or it cannot be told that the write changed nothing.
	Changed bool
	// Waiting is why the object is not finished; empty: it is.
	Waiting string
	// Err is why it failed, an *Error; nil: it did not.
	Err error
}

// Claim adds objects to the inventory, which is stored once if it grew, so that Apply need not do so for each. Nothing is
// written. Errors are faults of the manifests (an *Error or Errors; lists are refused, as is an object that
// another component has claimed), that of Options.Checkpoint, or that of an ended context; none of the objects is claimed then.
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

// prepare knows the kinds that were defined by manifests of earlier calls, and hides what their Secrets held.
func (s *Session) prepare(ctx context.Context, desired []Desired) ([]*object, error) {
	p := s.run.preparing(s.run.owner)
	p.singly = true
	s.run.lend(p)
	objects, err := p.objects(ctx, p.expand(desired))
	s.run.learn(p)
	return objects, err
}

// Apply claims what is not claimed yet, and writes what is not known to be unchanged, Options.Concurrency at a time, begun in
// the order given. The outcomes are in that order. The error holds those of the outcomes; what is waited for is none.
// Without outcomes it is one of Claim, and nothing was written. After an ended context, objects that were not
// written have its error.
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

// places are 0 to n-1.
func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Delete deletes objects of the inventory, Options.Concurrency at a time, begun in the order given. An entry leaves the
// inventory when its object is known to be gone; until then it is among what is waited for, and the caller calls again, at the
// latest after Report.After. Objects with the policies Keep and Ignore are let go at once. What the inventory does not
// have is gone. An object that was claimed under another API group stays, only the entry goes. Errors are those of
// single objects, as with Engine.Delete.
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

// dismiss deletes the object of an entry, unless the entry only has to go.
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

// hasUnderOtherName tells that the object was claimed with another API group.
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

// Inventory is the inventory as it is now. It must be stored also after an error.
func (s *Session) Inventory() Inventory {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.run.book.inventory()
}

// Unclaimed are the entries that nobody has claimed in this Session, in a fixed order: what is to be deleted when all that
// is desired was claimed.
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

// Report tells what was done so far, what is waited for now, and how a watch should see the objects of the whole inventory,
// those included that nobody has applied in this Session.
func (s *Session) Report() Report {
	s.run.locate()
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.run.reported()
}

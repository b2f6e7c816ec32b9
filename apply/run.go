// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// run is one call of the engine, or a Session. Each object is handled on a copy of its slot (see on), so that the
// book can be read at any time.
type run struct {
	*Engine

	owner ownership.Owner
	// dry means that nothing is stored, and that the answers show what would be stored.
	dry bool
	// hide removes the content of the current Secrets from all texts.
	hide *redact.Redactor
	// storing ensures that one inventory is stored at a time, so that a later one contains everything of an earlier
	// one.
	storing sync.Mutex

	mu      sync.Mutex // guards all fields below
	book    book
	busy    map[Ref]*sync.Mutex
	defined definitions
	report  Report
	waits   map[Ref]Waiting
	errs    Errors
}

func (e *Engine) newRun(owner ownership.Owner, inv Inventory, hide *redact.Redactor) *run {
	return &run{
		Engine: e, owner: owner, book: newBook(inv), hide: hide,
		busy: map[Ref]*sync.Mutex{}, defined: definitions{}, waits: map[Ref]Waiting{},
	}
}

// on calls f with the slot of an object, and prevents concurrent work on it. The slot is gone if the inventory does
// not contain the object.
func (r *run) on(ref Ref, f func(*slot)) {
	id := ref.id()
	lock := r.lockOf(id)
	lock.Lock()
	defer lock.Unlock()
	r.mu.Lock()
	own := r.book.at(id)
	r.mu.Unlock()
	f(&own)
	own.live = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.book[id]; known != nil {
		*known = own
	} else if !own.gone {
		r.book[id] = &own
	}
}

func (r *run) lockOf(id Ref) *sync.Mutex {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[id] == nil {
		r.busy[id] = &sync.Mutex{}
	}
	return r.busy[id]
}

// each applies a stage.
func (r *run) each(ctx context.Context, objects []*object) {
	forEach(ctx, r.options.Concurrency, objects, func(o *object) {
		_, err := r.one(ctx, o)
		r.fail(err)
	})
}

// one applies one claimed object and classifies the result. The error is also part of the outcome.
func (r *run) one(ctx context.Context, o *object) (Outcome, *Error) {
	out := Outcome{Ref: o.ref}
	if o.untouched() {
		return out, nil
	}
	var err error
	r.on(o.ref, func(s *slot) {
		s.gone, s.changed, s.live = false, false, nil
		err = r.applyObject(ctx, o, s)
		out.Live, out.Changed = s.live, s.changed
	})
	if isImmutable(err) {
		err = r.immutableField(ctx, o, err)
	}
	failed := r.sort(o.ref, err)
	if failed != nil {
		if o.Hint != "" {
			failed.Reason += ": " + o.Hint
		}
		out.Err = failed
	}
	out.Waiting = r.waitsFor(o.ref)
	return out, failed
}

// note records the result of one object, and keeps an error for the result of the call.
func (r *run) note(ref Ref, err error) { r.fail(r.sort(ref, err)) }

// sort updates the list of waiting objects for ref from err. It returns the classified error, or nil if err is nil or
// only means that the object is not finished.
func (r *run) sort(ref Ref, err error) *Error {
	var one *Error
	if err != nil {
		one = classify(ref, err, r.hide)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one != nil && one.Class != Wait && ref.isSecret() && !r.book.at(ref.id()).claimed {
		one.withoutExplanation() // its manifest is not known, so neither are its values
	}
	delete(r.waits, ref.id())
	if one != nil && one.Class == Wait {
		r.waits[one.Ref.id()] = Waiting{Ref: one.Ref, Reason: one.Reason}
		return nil
	}
	return one
}

// fail keeps an error for the result of the call.
func (r *run) fail(one *Error) {
	if one == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, one)
}

// waitsFor returns the reason why an object is not finished, or "" if nothing waits for it.
func (r *run) waitsFor(ref Ref) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits[ref.id()].Reason
}

// count adds one to a counter of the report.
func (r *run) count(number *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*number++
}

// event reports what happened to an object.
func (r *run) event(ref Ref, reason, message string) {
	if r.options.Events != nil {
		r.options.Events(Event{Ref: ref, Reason: reason, Message: clean(r.hide, message)})
	}
}

// complete reports whether everything so far is finished, so that the next step may begin.
func (r *run) complete(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ctx.Err() == nil && len(r.errs) == 0 && len(r.waits) == 0
}

// all returns every slot, in a fixed order.
func (r *run) all() []*slot {
	out := make([]*slot, 0, len(r.book))
	for _, s := range r.book {
		if !s.gone {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *slot) int { return compareRefs(a.Ref(), b.Ref()) })
	return out
}

func (r *run) result(ctx context.Context) (Inventory, Report, error) {
	err := r.joined(ctx, r.errs)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.inventory(), r.reported(), err
}

// reported returns the report of everything that was done. The caller holds mu.
func (r *run) reported() Report {
	out := r.report
	for _, w := range r.waits {
		out.Waiting = append(out.Waiting, w)
	}
	out.sort()
	out.Owned = r.owned()
	return out
}

// joined returns nil if there are no errors and the context has not ended.
func (r *run) joined(ctx context.Context, errs Errors) error {
	slices.SortFunc(errs, func(a, b *Error) int { return compareRefs(a.Ref, b.Ref) })
	if ctx.Err() != nil {
		errs = append(Errors{r.stopped(ctx, Ref{})}, errs...)
	}
	return errs.err()
}

// stopped returns the error for what was not done because the context ended.
func (r *run) stopped(ctx context.Context, ref Ref) *Error {
	cause := context.Cause(ctx)
	return &Error{Ref: ref, Reason: "stopped: " + clean(r.hide, cause.Error()), Class: Retry, cause: cause}
}

// lend gives a preparation what earlier ones found.
func (r *run) lend(p *preparing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(p.defined, r.defined)
	p.hide = r.hide
}

// learn keeps what a preparation found.
func (r *run) learn(p *preparing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.defined, p.defined)
}

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

// run is one call of the engine, or a Session. Whoever works on an object works on a copy of its slot (see on), so that
// the book can be read at any time.
type run struct {
	*Engine

	owner ownership.Owner
	// dry: nothing is stored, and the answers tell what would be.
	dry bool
	// hide takes out of all texts what the Secrets at hand hold.
	hide *redact.Redactor
	// storing lets one inventory be stored at a time, so that a later one holds all that an earlier one did.
	storing sync.Mutex

	mu      sync.Mutex // guards all below
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

// on gives f the slot of an object, which nobody else works on meanwhile. gone: the inventory does not have it.
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

// one applies one object, which was claimed, and sorts what came out. The error is that of the outcome.
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

// note sorts what one object came back with, and keeps an error for the result.
func (r *run) note(ref Ref, err error) { r.fail(r.sort(ref, err)) }

// sort notes that an object is waited for, or no longer is. It returns what is an error, classified; nil: it is none.
func (r *run) sort(ref Ref, err error) *Error {
	var one *Error
	if err != nil {
		one = classify(ref, err, r.hide)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one != nil && one.Class != Wait && ref.isSecret() && !r.book.at(ref.id()).claimed {
		one.withoutExplanation() // its manifest, and so what is in it, is not known
	}
	delete(r.waits, ref.id())
	if one != nil && one.Class == Wait {
		r.waits[one.Ref.id()] = Waiting{Ref: one.Ref, Reason: one.Reason}
		return nil
	}
	return one
}

// fail keeps an error for the result.
func (r *run) fail(one *Error) {
	if one == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, one)
}

// waitsFor is why an object is not finished; empty: it is not waited for.
func (r *run) waitsFor(ref Ref) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits[ref.id()].Reason
}

// count adds one to a number of the report.
func (r *run) count(number *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*number++
}

// event tells what happened.
func (r *run) event(ref Ref, reason, message string) {
	if r.options.Events != nil {
		r.options.Events(Event{Ref: ref, Reason: reason, Message: clean(r.hide, message)})
	}
}

// complete tells that everything so far is finished, so that the next step may begin.
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

// reported is the report of all that was done. The caller holds mu.
func (r *run) reported() Report {
	out := r.report
	for _, w := range r.waits {
		out.Waiting = append(out.Waiting, w)
	}
	out.sort()
	out.Owned = r.owned()
	return out
}

// joined is nil if there are no errors and the context has not ended.
func (r *run) joined(ctx context.Context, errs Errors) error {
	slices.SortFunc(errs, func(a, b *Error) int { return compareRefs(a.Ref, b.Ref) })
	if ctx.Err() != nil {
		errs = append(Errors{r.stopped(ctx, Ref{})}, errs...)
	}
	return errs.err()
}

// stopped is the error of what was not done since the context ended.
func (r *run) stopped(ctx context.Context, ref Ref) *Error {
	cause := context.Cause(ctx)
	return &Error{Ref: ref, Reason: "stopped: " + clean(r.hide, cause.Error()), Class: Retry, cause: cause}
}

// lend gives a preparation what is known from earlier ones.
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

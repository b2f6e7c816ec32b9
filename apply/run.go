// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"sync"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// run is one call of the engine. The book's set of objects is fixed while goroutines run; the report and the errors
// are shared between them.
type run struct {
	*Engine

	owner ownership.Owner
	book  book
	hide  hidden
	// dry: nothing is stored, and the answers tell what would be.
	dry bool

	mu     sync.Mutex
	report Report
	errs   Errors
}

func (e *Engine) newRun(owner ownership.Owner, inv Inventory, hide hidden) *run {
	return &run{Engine: e, owner: owner, book: newBook(inv), hide: hide}
}

// each applies a stage.
func (r *run) each(ctx context.Context, objects []*object) {
	forEach(ctx, r.options.Concurrency, objects, func(o *object) {
		if o.Policy != Ignore {
			r.note(o.ref, r.applyObject(ctx, o, r.book[o.ref.id()]))
		}
	})
}

// note sorts what one object came back with.
func (r *run) note(ref Ref, err error) {
	if err == nil {
		return
	}
	one := classify(ref, err, r.hide)
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.Class == Wait {
		r.report.Waiting = append(r.report.Waiting, Waiting{Ref: one.Ref, Reason: one.Reason})
		return
	}
	r.errs = append(r.errs, one)
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
		r.options.Events(Event{Ref: ref, Reason: reason, Message: r.hide.clean(message)})
	}
}

// complete tells that everything so far is finished, so that the next step may begin.
func (r *run) complete(ctx context.Context) bool {
	return ctx.Err() == nil && len(r.errs) == 0 && r.report.Done()
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
	slices.SortFunc(r.errs, func(a, b *Error) int { return compareRefs(a.Ref, b.Ref) })
	r.report.sort()
	r.report.Owned = r.owned()
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		r.errs = append(Errors{{Reason: "stopped: " + r.hide.clean(cause.Error()), Class: Retry, cause: cause}}, r.errs...)
	}
	return r.book.inventory(), r.report, r.errs.err()
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// results collects the results of one call for all its objects.
type results struct {
	// hide removes the values of the Secrets in the current manifests from all texts.
	hide *redact.Redactor

	mu      sync.Mutex // guards all fields below
	report  Report
	waiting map[Ref]Waiting
	// blocked contains the objects that were not tried, because they depend on unfinished objects.
	blocked []Waiting
	errs    Errors
}

func newResults(hide *redact.Redactor) *results {
	return &results{hide: hide, waiting: map[Ref]Waiting{}}
}

// record counts the result of the last step for an object, and updates the list of waiting objects. It returns the
// classified error, or nil if there is no error or the object is only unfinished.
func (r *results) record(s decide.Step) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch ref := s.Facts.Ref(); s.Count {
	case decide.CountApplied:
		r.report.Applied++
	case decide.CountUnchanged:
		r.report.Unchanged++
	case decide.CountPostponed:
		r.report.Unchanged++
		r.report.Postponed = append(r.report.Postponed, ref)
	case decide.CountDeleted:
		r.report.Deleted++
	}
	return r.updateWaiting(s.Facts.Ref(), s.Err, s.Facts.Claimed)
}

// updateWaiting classifies the error of an object and updates the list of waiting objects. It returns nil if there is
// no error or the object is only unfinished. The argument isKnown means that the manifest of the object is known, so
// that the redactor can remove the values of a Secret. The caller holds mu.
func (r *results) updateWaiting(ref Ref, err error, isKnown bool) *Error {
	delete(r.waiting, toID(ref))
	if err == nil {
		return nil
	}
	one := newRequestError(ref, err, r.hide)
	if one.Class == ClassWait {
		r.waiting[toID(one.Ref)] = Waiting{Ref: one.Ref, Message: one.Message, NotServed: one.unserved}
		return nil
	}
	if isSecret(ref) && !isKnown {
		one.removeExplanation() // the redactor does not know the values of this Secret
	}
	return one
}

// addError adds an error to the result of the call, unless the error is nil.
func (r *results) addError(one *Error) {
	if one == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, one)
}

// recordError classifies an error that does not come from a step, and updates the list of waiting objects. It adds the
// error to the result of the call, unless the object is only unfinished.
func (r *results) recordError(ref Ref, err error) {
	r.mu.Lock()
	one := r.updateWaiting(ref, err, false)
	r.mu.Unlock()
	r.addError(one)
}

// addSkipped records an object that belongs to no deletion group.
func (r *results) addSkipped(ref Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Skipped = append(r.report.Skipped, ref)
}

// getWaiting returns why an object is unfinished. The reason is empty if the object is not waiting.
func (r *results) getWaiting(ref Ref) Waiting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting[toID(ref)]
}

// addBlocked records an object that was not tried, because it depends on an unfinished object.
func (r *results) addBlocked(ref Ref, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = append(r.blocked, Waiting{Ref: ref, Message: reason})
}

// isFinished reports whether an object neither failed nor waits.
func (r *results) isFinished(ref Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waits := r.waiting[toID(ref)]
	return !waits && !slices.ContainsFunc(r.errs, func(e *Error) bool { return toID(e.Ref) == toID(ref) })
}

// isComplete reports whether all objects whose results were recorded are finished without errors, so that the next
// stage or deletion group may begin.
func (r *results) isComplete(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ctx.Err() == nil && len(r.errs) == 0 && len(r.waiting) == 0 && len(r.blocked) == 0
}

// isCompleteIfServed is like isComplete, but ignores objects that wait only because the cluster does not serve their
// kind.
func (r *results) isCompleteIfServed(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := slices.ContainsFunc(slices.Collect(maps.Values(r.waiting)), func(w Waiting) bool { return !w.NotServed })
	return ctx.Err() == nil && len(r.errs) == 0 && !waits && len(r.blocked) == 0
}

// listWebhooks returns the names of the admission webhooks that refused a write, or that the API server could not call.
func (r *results) listWebhooks() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]bool{}
	for _, one := range r.errs {
		if one.webhook != "" {
			out[one.webhook] = true
		}
	}
	return out
}

// toReport returns the report of the call so far, without Report.Owned. The order in the report does not depend on the
// order in which the goroutines ran.
func (r *results) toReport() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.report
	byRef := func(a, b Waiting) int { return compareRefs(a.Ref, b.Ref) }
	out.Waiting = append(slices.SortedFunc(maps.Values(r.waiting), byRef), slices.SortedFunc(slices.Values(r.blocked), byRef)...)
	slices.SortFunc(out.Skipped, compareRefs)
	slices.SortFunc(out.Postponed, compareRefs)
	return out
}

// err returns the error of the call.
func (r *results) err(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.joinErrors(ctx, r.errs)
}

// joinErrors returns the errors as one error, and adds an error if the context has ended. It ignores errors that are
// nil. It returns nil if there are no errors and the context has not ended.
func (r *results) joinErrors(ctx context.Context, errs Errors) error {
	errs = slices.DeleteFunc(errs, func(e *Error) bool { return e == nil })
	slices.SortFunc(errs, func(a, b *Error) int { return compareRefs(a.Ref, b.Ref) })
	if ctx.Err() != nil {
		errs = append(Errors{r.newStoppedError(ctx, Ref{})}, errs...)
	}
	return errs.err()
}

// newStoppedError returns the error for an object that was not processed because the context ended. It returns nil if
// the context has not ended.
func (r *results) newStoppedError(ctx context.Context, ref Ref) *Error {
	cause := context.Cause(ctx)
	return &Error{Ref: ref, Message: "stopped: " + cleanText(r.hide, cause.Error()), Class: ClassRetry, cause: cause}
}

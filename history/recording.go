// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Recording is the record of a reconcile in progress. It is safe for concurrent use. The methods do nothing if the
// Recording is nil or has ended.
type Recording struct {
	store *Store
	item  types.NamespacedName

	mu    sync.Mutex
	ended bool
	r     Reconcile
}

// Result describes how a reconcile ended.
type Result struct {
	// Now is the time at which the reconcile ended.
	Now time.Time
	// Reason, Action, Result and Codes have the same meaning as in [Reconcile].
	Reason, Action, Result string
	Codes                  []string
	// Calls contains the requests that were sent.
	Calls []Call
	// HasNext is true if another reconcile was requested. After is the delay until that reconcile.
	HasNext bool
	After   time.Duration
}

// AddPhase records that a phase ended that began at the given time. AddPhase sets its field Start.
func (rec *Recording) AddPhase(phase Phase, began time.Time) {
	rec.add(func(r *Reconcile) {
		if len(r.Phases) >= maxPhases {
			r.Omitted++
			return
		}
		if r.Phases == nil {
			r.Phases = make([]Phase, 0, maxPhases)
		}
		phase.Start = began.Sub(r.Began).Microseconds()
		r.Phases = append(r.Phases, phase)
	})
}

// AddHook records that a hook returned that was called at the given time. AddHook sets its field Start.
func (rec *Recording) AddHook(hook Hook, began time.Time) {
	rec.add(func(r *Reconcile) {
		if len(r.Hooks) >= maxHooks {
			r.Omitted++
			return
		}
		hook.Type, hook.Name, hook.Start = shortenText(hook.Type), shortenText(hook.Name), began.Sub(r.Began).Microseconds()
		r.Hooks = append(r.Hooks, hook)
	})
}

func (rec *Recording) add(do func(*Reconcile)) {
	if rec == nil {
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if !rec.ended {
		do(&rec.r)
	}
}

// Complete records how the reconcile ended and adds it to the store. Later calls have no effect.
func (rec *Recording) Complete(e Result) {
	rec.add(func(r *Reconcile) {
		rec.ended = true
		r.Micros, r.Reason, r.Action, r.Result = e.Now.Sub(r.Began).Microseconds(), shortenText(e.Reason), shortenText(e.Action), shortenText(e.Result)
		for _, code := range e.Codes[:min(len(e.Codes), maxCodes)] {
			r.Codes = append(r.Codes, shortenText(code))
		}
		calls := e.Calls[:min(len(e.Calls), maxCalls)]
		r.Omitted += len(e.Calls) - len(calls)
		for _, c := range calls {
			r.Calls = append(r.Calls, Call{Cluster: shortenText(c.Cluster), Verb: shortenText(c.Verb), Resource: shortenText(c.Resource), Count: c.Count, Start: c.Start, Micros: c.Micros})
		}
		var next time.Time
		if e.HasNext {
			next = e.Now.Add(e.After)
			r.Next = &NextReconcile{At: next.UTC()}
		}
		rec.store.put(rec.item, r, next)
	})
}

type contextKey struct{}

// NewContext returns a context that carries a recording.
func NewContext(ctx context.Context, rec *Recording) context.Context {
	if rec == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, rec)
}

// FromContext returns the recording that a context carries, or nil if there is none.
func FromContext(ctx context.Context) *Recording {
	rec, _ := ctx.Value(contextKey{}).(*Recording)
	return rec
}

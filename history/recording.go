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

// End describes how a reconcile ended.
type End struct {
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

// Phase records that a phase ended.
func (rec *Recording) Phase(name, verdict string, took time.Duration, failed bool) {
	rec.add(func(r *Reconcile) {
		if len(r.Phases) >= maxPhases {
			r.Omitted++
			return
		}
		if r.Phases == nil {
			r.Phases = make([]Phase, 0, maxPhases)
		}
		r.Phases = append(r.Phases, Phase{Name: name, Verdict: verdict, Micros: took.Microseconds(), Failed: failed})
	})
}

// Hook records that a hook returned.
func (rec *Recording) Hook(hookType, name, effect string, took time.Duration, failed bool) {
	rec.add(func(r *Reconcile) {
		if len(r.Hooks) >= maxHooks {
			r.Omitted++
			return
		}
		r.Hooks = append(r.Hooks, Hook{Type: word(hookType), Name: word(name), Effect: effect, Micros: took.Microseconds(), Failed: failed})
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

// End records how the reconcile ended and adds it to the store. Later calls have no effect.
func (rec *Recording) End(e End) {
	rec.add(func(r *Reconcile) {
		rec.ended = true
		r.Micros, r.Reason, r.Action, r.Result = e.Now.Sub(r.Began).Microseconds(), word(e.Reason), word(e.Action), word(e.Result)
		for _, code := range e.Codes[:min(len(e.Codes), maxCodes)] {
			r.Codes = append(r.Codes, word(code))
		}
		calls := e.Calls[:min(len(e.Calls), maxCalls)]
		r.Omitted += len(e.Calls) - len(calls)
		for _, c := range calls {
			r.Calls = append(r.Calls, Call{Cluster: word(c.Cluster), Verb: word(c.Verb), Resource: word(c.Resource), Count: c.Count})
		}
		var next time.Time
		if e.HasNext {
			next = e.Now.Add(e.After)
			r.Next = &Next{At: next.UTC()}
		}
		rec.store.put(rec.item, r, next)
	})
}

type contextKey struct{}

// With returns a context that carries a recording.
func With(ctx context.Context, rec *Recording) context.Context {
	if rec == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, rec)
}

// From returns the recording that a context carries, or nil if there is none.
func From(ctx context.Context) *Recording {
	rec, _ := ctx.Value(contextKey{}).(*Recording)
	return rec
}

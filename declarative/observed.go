// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

const (
	// syncTimeout bounds how long a run waits for the first list of a kind.
	syncTimeout = 10 * time.Second
	// retryRefused is how long the refusal of a target counts; retryMissing is for kinds that it does not
	// have, which the next child may bring.
	retryRefused = 10 * time.Minute
	retryMissing = 10 * time.Second
	// idleAfter is how long the informer of a single namespace stays that nobody asked for.
	idleAfter = 10 * time.Minute
	// maxObservations bounds the informers of a deployer. What is beyond is read live.
	maxObservations = 1000
)

// observer holds the whole children of one target in memory: one informer for each kind, over all of the cluster or, if
// the target does not allow that, over single namespaces. What it does not cover is read live.
type observer struct {
	client  dynamic.Interface
	clock   clock.PassiveClock
	spawn   func(func(context.Context)) bool // runs something until the target's end; false: that was already
	changed func(item types.UID)             // never blocks
	open    *atomic.Int32                    // informers of all targets

	mu       sync.Mutex
	observed map[place]*observation
	refusals map[place]refusal
}

// place is what one informer covers. An empty namespace is the whole cluster.
type place struct {
	resource  schema.GroupVersionResource
	namespace string
}

func (p place) String() string {
	if p.namespace == "" {
		return p.resource.GroupResource().String() + " in the cluster"
	}
	return p.resource.GroupResource().String() + " in namespace " + p.namespace
}

// refusal is remembered, so that not every run asks for what the target does not give.
type refusal struct {
	reason error
	until  time.Time
}

// refusedError is an answer of the target that will stay the same for a while.
type refusedError struct {
	reason    string
	forbidden bool // less may be allowed
}

func (e *refusedError) Error() string { return e.reason }

func newObserver(client dynamic.Interface, clock clock.PassiveClock, open *atomic.Int32) *observer {
	return &observer{client: client, clock: clock, open: open, observed: map[place]*observation{}, refusals: map[place]refusal{}}
}

// view is what an observer covers of a kind.
type view struct {
	whole *observation            // of the cluster; nil: not allowed
	parts map[string]*observation // of namespaces
	// reason why not all is covered that was asked for, one line; empty if it is.
	reason string
}

// view opens a kind and waits for its first list. namespaces: where the item has or may have children of the kind.
// The error is ctx's. An informer that runs already costs nothing.
func (o *observer) view(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) (view, error) {
	waiting, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	whole, reason := o.at(waiting, place{resource: resource})
	if reason == nil {
		return view{whole: whole}, ctx.Err()
	}
	v := view{parts: map[string]*observation{}, reason: reason.Error()}
	if refused, ok := errors.AsType[*refusedError](reason); !ok || !refused.forbidden {
		return v, ctx.Err()
	}
	covered := true
	for _, namespace := range namespaces {
		part, err := o.at(waiting, place{resource, namespace})
		if err != nil {
			v.reason, covered = err.Error(), false
			continue
		}
		v.parts[namespace] = part
	}
	if covered && len(namespaces) > 0 {
		v.reason = ""
	}
	return v, ctx.Err()
}

// at finds the objects of a place if they can be observed.
func (o *observer) at(ctx context.Context, p place) (*observation, error) {
	seen, fresh, err := o.find(p)
	if err != nil {
		return nil, err
	}
	return seen, seen.await(ctx, fresh)
}

// find finds or starts the informer of a place.
func (o *observer) find(p place) (seen *observation, fresh bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if seen := o.observed[p]; seen != nil {
		seen.used = now
		return seen, false, nil
	}
	if r, ok := o.refusals[p]; ok && now.Before(r.until) {
		return nil, false, r.reason
	}
	delete(o.refusals, p)
	o.collect(now)
	if o.open.Add(1) > maxObservations {
		o.open.Add(-1)
		return nil, false, fmt.Errorf("%s: the limit of %d informers is reached", p, maxObservations)
	}
	seen = newObservation(o, p, now)
	if !o.spawn(seen.run) {
		o.open.Add(-1)
		return nil, false, fmt.Errorf("%s: the target was just closed", p)
	}
	o.observed[p] = seen
	return seen, true, nil
}

// refuse ends an informer that the target does not allow, and remembers that.
func (o *observer) refuse(seen *observation, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := retryRefused
	if !apierrors.IsForbidden(err) {
		rest = retryMissing
	}
	text := fmt.Sprintf("%s: %s", seen.place, strings.Join(strings.Fields(err.Error()), " "))
	seen.refused = &refusedError{reason: text, forbidden: apierrors.IsForbidden(err)}
	o.refusals[seen.place] = refusal{reason: seen.refused, until: o.clock.Now().Add(rest)}
	o.end(seen)
}

// end stops an informer. The lock is held.
func (o *observer) end(seen *observation) {
	if o.observed[seen.place] == seen {
		delete(o.observed, seen.place)
	}
	seen.stop()
}

// collect ends the informers of namespaces that nobody needs any more. The lock is held.
func (o *observer) collect(now time.Time) {
	for p, seen := range o.observed {
		whole := o.observed[place{resource: p.resource}]
		superseded := whole != nil && whole.live.Load()
		if p.namespace != "" && (superseded || now.Sub(seen.used) >= idleAfter && len(seen.informer.GetStore().ListKeys()) == 0) {
			o.end(seen)
		}
	}
}

// covers tells whether the view knows all objects of a namespace. Empty: those without namespace.
func (v view) covers(namespace string) bool { return v.in(namespace) != nil }

// in is the informer for a namespace; nil without one.
func (v view) in(namespace string) *observation {
	if v.whole != nil {
		return v.whole
	}
	return v.parts[namespace]
}

// of finds the objects that carry an item's mark, and those of an earlier life of the item. They are shared: copy them.
func (v view) of(owner ownership.Owner) []*unstructured.Unstructured {
	if v.whole != nil {
		return v.whole.of(owner)
	}
	var out []*unstructured.Unstructured
	for _, part := range v.parts {
		out = append(out, part.of(owner)...)
	}
	return out
}

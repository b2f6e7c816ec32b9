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
	// retryRefused is how long a refusal by a target is remembered. retryMissing is the same for kinds that the target
	// does not have, but may get with the next child.
	retryRefused = 10 * time.Minute
	retryMissing = 10 * time.Second
	// idleAfter is how long the informer of a single namespace stays after its last use.
	idleAfter = 10 * time.Minute
	// maxObservations bounds the informers of a deployer. Further objects are read live.
	maxObservations = 1000
)

// observer holds the whole children of one target in memory. It has one informer for each kind over all of the cluster
// or, if the target does not allow that, informers over single namespaces. What they do not cover is read live.
type observer struct {
	client  dynamic.Interface
	clock   clock.PassiveClock
	spawn   func(func(context.Context)) bool // runs a function until the target ends; returns false if it has ended
	changed func(item types.UID)             // never blocks
	open    *atomic.Int32                    // number of informers of all targets

	mu       sync.Mutex
	observed map[place]*observation
	refusals map[place]refusal
}

// place is what one informer covers. An empty namespace means the whole cluster.
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

// refusal is remembered, so that not every run repeats a request that the target refuses.
type refusal struct {
	reason error
	until  time.Time
}

// refusedError is an error of the target that stays the same for a while.
type refusedError struct {
	reason    string
	forbidden bool // a smaller scope may be allowed
}

func (e *refusedError) Error() string { return e.reason }

func newObserver(client dynamic.Interface, clock clock.PassiveClock, open *atomic.Int32) *observer {
	return &observer{client: client, clock: clock, open: open, observed: map[place]*observation{}, refusals: map[place]refusal{}}
}

// view is what an observer covers of a kind.
type view struct {
	whole *observation            // of the cluster, or nil if it is not allowed
	parts map[string]*observation // of namespaces
	// reason says in one line why not all requested objects are covered. It is empty if they are.
	reason string
}

// view opens a kind and waits for its first list. namespaces are those where the item has or may have children of the
// kind. The error is that of ctx. An informer that already runs costs nothing.
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

// at returns the informer of a place if the place can be observed.
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

// refuse ends an informer that the target does not allow, and remembers the refusal.
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

// end stops an informer. The caller holds the lock.
func (o *observer) end(seen *observation) {
	if o.observed[seen.place] == seen {
		delete(o.observed, seen.place)
	}
	seen.stop()
}

// collect ends the informers of namespaces that are no longer in use. The caller holds the lock.
func (o *observer) collect(now time.Time) {
	for p, seen := range o.observed {
		whole := o.observed[place{resource: p.resource}]
		superseded := whole != nil && whole.live.Load()
		if p.namespace != "" && (superseded || now.Sub(seen.used) >= idleAfter && len(seen.informer.GetStore().ListKeys()) == 0) {
			o.end(seen)
		}
	}
}

// covers reports whether the view knows all objects of a namespace. An empty namespace means objects without namespace.
func (v view) covers(namespace string) bool { return v.in(namespace) != nil }

// in returns the informer for a namespace, or nil if there is none.
func (v view) in(namespace string) *observation {
	if v.whole != nil {
		return v.whole
	}
	return v.parts[namespace]
}

// of returns the objects that carry the mark of an item or of an earlier item of the same name. They are shared, so
// copy them before a change.
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

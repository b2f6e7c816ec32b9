// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/targets"
)

// maxSights limits what one waiting item watches. Further sights are polled.
const maxSights = 16

// Sight is what a step looked at and waits for. It need not belong to the item, so the watches of the target may not
// show it.
type Sight struct {
	cluster   *Cluster
	resource  schema.GroupVersionResource
	namespace string
	selects   metav1.ListOptions
	seen      string // the versions of the found objects
}

// SightOf returns a Sight of one object. live is nil if the object does not exist. ref has no namespace if its kind
// has none.
func SightOf(from *Cluster, resource schema.GroupVersionResource, ref apply.Ref, live *unstructured.Unstructured) Sight {
	found := []*unstructured.Unstructured{}
	if live != nil {
		found = append(found, live)
	}
	selects := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()}
	return Sight{from, resource, ref.Namespace, selects, versions(found)}
}

// SightOfAll returns a Sight of the objects of a resource that have all the labels, in all namespaces.
func SightOfAll(from *Cluster, resource schema.GroupVersionResource, wanted map[string]string, found []*unstructured.Unstructured) Sight {
	return Sight{from, resource, "", metav1.ListOptions{LabelSelector: labels.Set(wanted).String()}, versions(found)}
}

// versions returns a text that identifies the state of some objects.
func versions[T metav1.Object](objects []T) string {
	var out []string
	for _, obj := range objects {
		out = append(out, string(obj.GetUID())+" "+obj.GetResourceVersion())
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (s Sight) String() string {
	return fmt.Sprintf("%p %s %s %s%s: %s", s.cluster, s.resource, s.namespace, s.selects.FieldSelector, s.selects.LabelSelector, s.seen)
}

// lookout watches sights until one of them changes.
type lookout struct {
	what    string // the sights that it watches, and their states
	sights  int
	watched atomic.Int32 // the number of sights that are watched by now
	over    atomic.Bool  // whether something changed
	stop    context.CancelFunc
}

// LookOut makes the item come back when one of the sights changes. It returns when to look again if no watch reports
// a change before, for the last parameter of Wait. The time is shorter while not all sights are watched. The sights
// of an earlier call are no longer watched.
func (r *Run) LookOut(sights []Sight) time.Duration {
	if len(sights) == 0 || len(sights) > maxSights {
		return pollUnwatched
	}
	watched := r.item.lookOut(fmt.Sprint(sights), func() *lookout {
		return r.clusters.lookOut(sights, r.item.throttle.event)
	})
	if watched {
		return pollWatched
	}
	return pollUnwatched
}

// lookOut continues a lookout for the same sights, or starts another one.
func (i *item) lookOut(what string, begin func() *lookout) (watched bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if old := i.lookout; old != nil {
		if old.what == what && !old.over.Load() {
			return int(old.watched.Load()) == old.sights
		}
		old.stop()
	}
	i.lookout = begin()
	i.lookout.what = what
	return false
}

// lookOut watches each sight in a separate goroutine, until one changes.
func (s *clusters) lookOut(sights []Sight, changed func()) *lookout {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &lookout{sights: len(sights), stop: func() {}}
	if s.ctx == nil || s.ctx.Err() != nil {
		return l
	}
	ctx, stop := context.WithCancel(s.ctx)
	l.stop = stop
	for _, one := range sights {
		s.running.Go(func() {
			if one.change(ctx, l) && !l.over.Swap(true) {
				changed()
			}
			if l.over.Load() {
				stop()
			}
		})
	}
	return l
}

// sightResult is the reason why waiting for a change of a sight ended.
type sightResult int

const (
	sightChanged   sightResult = iota // something changed
	sightEnded                        // the server ended the watch
	sightUnwatched                    // watching is refused, and nothing has changed so far
	sightRefused                      // even listing is refused
	sightClosed                       // the wait was cancelled
)

// change waits for a change. It returns false if ctx ended first, or if the target does not allow watching.
func (s Sight) change(ctx context.Context, l *lookout) bool {
	result := s.wait(ctx, func() { l.watched.Add(1) })
	return ctx.Err() == nil && (result == sightChanged || result == sightEnded)
}

// wait waits for a change. It calls watched when the watch is open.
func (s Sight) wait(ctx context.Context, watched func()) sightResult {
	resource := s.cluster.metadata.Resource(s.resource)
	held, release := targets.Hold(ctx)
	list, err := resource.Namespace(s.namespace).List(held, s.selects)
	release()
	switch {
	case ctx.Err() != nil:
		return sightClosed
	case err != nil:
		return sightRefused
	}
	found := make([]metav1.Object, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	if versions(found) != s.seen {
		return sightChanged
	}
	from := s.selects
	from.ResourceVersion = list.ResourceVersion
	events, err := resource.Namespace(s.namespace).Watch(ctx, from)
	if err != nil {
		return sightUnwatched
	}
	defer events.Stop()
	watched()
	select {
	case event, open := <-events.ResultChan():
		if !open || event.Type == apiwatch.Error {
			return sightEnded
		}
		return sightChanged
	case <-ctx.Done():
	case <-s.cluster.ended:
	}
	return sightClosed
}

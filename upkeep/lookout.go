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

// maxSights is the maximum number of Sights that are watched for a waiting item. A Sight selects objects for which the
// item waits. If an item has more Sights, none of them is watched, and the item is polled.
const maxSights = 16

// Sight selects objects that a step has read and for which it waits, such as the objects of a readiness check. It
// contains the resource versions that the step has read. The objects need not belong to the item.
type Sight struct {
	cluster   *Cluster
	resource  schema.GroupVersionResource
	namespace string          // empty for all namespaces
	name      string          // the name of the object if the Sight selects a single object, otherwise empty
	labels    labels.Selector // matches everything if the Sight selects a single object
	seen      string          // the resource versions of the objects that were found
}

// SightOf returns a Sight of one object. The parameter `live` is nil if the object does not exist. The namespace of
// `ref` is empty if the kind is cluster-scoped.
func SightOf(from *Cluster, resource schema.GroupVersionResource, ref apply.Ref, live *unstructured.Unstructured) Sight {
	found := []*unstructured.Unstructured{}
	if live != nil {
		found = append(found, live)
	}
	return Sight{from, resource, ref.Namespace, ref.Name, labels.Everything(), versions(found)}
}

// SightOfAll returns a Sight of all objects of a resource, in all namespaces, that have the wanted labels. The
// parameter `found` contains the objects that the caller has read.
func SightOfAll(from *Cluster, resource schema.GroupVersionResource, wanted map[string]string, found []*unstructured.Unstructured) Sight {
	return Sight{from, resource, "", "", labels.SelectorFromSet(wanted), versions(found)}
}

// versions returns a string that contains the UIDs and the resource versions of the given objects.
func versions[T metav1.Object](objects []T) string {
	var out []string
	for _, obj := range objects {
		out = append(out, string(obj.GetUID())+" "+obj.GetResourceVersion())
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (s Sight) String() string {
	return fmt.Sprintf("%p %s %s %s %s: %s", s.cluster, s.resource, s.namespace, s.name, s.labels, s.seen)
}

// lookout watches the objects for which an item waits, until one of the objects changes. Several Sights select these
// objects.
type lookout struct {
	what    string // identifies the Sights and the states of their objects
	sights  int
	watched atomic.Int32 // the number of Sights that are watched so far
	over    atomic.Bool  // an object has changed
	stop    context.CancelFunc
}

// LookOut watches the objects that the Sights select. When one of them changes, the item is reconciled again. The
// Sights of an earlier call are no longer watched. LookOut returns the time after which the objects must be read again
// if no watch reports a change. Pass this time to Wait as the last argument. It is shorter if not all Sights are
// watched.
func (r *Run) LookOut(sights []Sight) time.Duration {
	if len(sights) == 0 || len(sights) > maxSights {
		return pollUnwatched
	}
	watched := r.item.lookOut(fmt.Sprint(sights), func() *lookout {
		return r.Keeper.clusters.lookOut(sights, r.item.throttle.event)
	})
	if watched {
		return pollWatched
	}
	return pollUnwatched
}

// lookOut calls the function `begin` to create the lookout of the item, and stops the previous lookout. If the previous
// lookout has the same Sights and has seen no change, the method keeps it instead. The parameter `what` identifies the
// Sights. The result reports whether all Sights are watched.
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

// lookOut watches the objects of each Sight in a separate goroutine. When the first of them changes, or the server ends
// the first watch, lookOut calls the function `changed`. If the target does not allow watching, it does not.
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
			result := one.wait(ctx, func() { l.watched.Add(1) })
			if ctx.Err() == nil && (result == sightChanged || result == sightEnded) && !l.over.Swap(true) {
				changed()
			}
			if l.over.Load() {
				stop()
			}
		})
	}
	return l
}

// sightResult is the reason why a Sight is no longer watched.
type sightResult int

const (
	sightChanged   sightResult = iota // the objects have changed
	sightEnded                        // the server ended the watch
	sightUnwatched                    // the target refuses to watch; nothing has changed so far
	sightRefused                      // the target refuses even to list
	sightClosed                       // the context ended or the cluster was closed
)

// wait waits until one of the selected objects changes. It calls the function `watched` when the watch is open.
func (s Sight) wait(ctx context.Context, watched func()) sightResult {
	resource := s.cluster.metadata.Resource(s.resource)
	selects := metav1.ListOptions{LabelSelector: s.labels.String()}
	if s.name != "" {
		selects.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String()
	}
	held, release := targets.ReserveMemory(ctx)
	list, err := resource.Namespace(s.namespace).List(held, selects)
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
	selects.ResourceVersion = list.ResourceVersion
	events, err := resource.Namespace(s.namespace).Watch(ctx, selects)
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

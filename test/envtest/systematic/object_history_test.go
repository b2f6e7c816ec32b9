// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectHistory records every version of every ConfigMap and Secret of the cluster, grouped by namespace.
type objectHistory struct {
	watches []watch.Interface
	running sync.WaitGroup

	mu       sync.Mutex
	versions map[string][]version
	broken   error
}

// version is a stored version of an object. For a deleted object, the last version records the deletion.
type version struct {
	event  watch.EventType
	kind   string
	object client.Object
}

// getResourceVersion returns the resource version of the stored object. All objects are in one etcd, so the resource
// versions show the order of the writes.
func (v version) getResourceVersion() uint64 { return parseResourceVersion(v.object) }

func parseResourceVersion(obj client.Object) uint64 {
	n, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// String returns the kind and name of the object, such as "ConfigMap item-main".
func (v version) String() string { return v.kind + " " + v.object.GetName() }

// newChronicle starts to watch the cluster. The watch ends when the method `stop` is called.
func newChronicle(ctx context.Context, c client.WithWatch) (*objectHistory, error) {
	r := &objectHistory{versions: map[string][]version{}}
	for kind, list := range map[string]client.ObjectList{"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{}} {
		events, err := c.Watch(context.WithoutCancel(ctx), list)
		if err != nil {
			return nil, fmt.Errorf("watch %ss: %w", kind, err)
		}
		r.watches = append(r.watches, events)
		r.running.Go(func() { r.recordEvents(kind, events) })
	}
	return r, nil
}

func (r *objectHistory) recordEvents(kind string, events watch.Interface) {
	for event := range events.ResultChan() {
		obj, ok := event.Object.(client.Object)
		r.mu.Lock()
		if ok && event.Type != watch.Error {
			r.versions[obj.GetNamespace()] = append(r.versions[obj.GetNamespace()], version{event: event.Type, kind: kind, object: obj})
		} else {
			r.broken = fmt.Errorf("the watch of %ss broke: %v", kind, event.Object)
		}
		r.mu.Unlock()
	}
}

func (r *objectHistory) stop() {
	for _, w := range r.watches {
		w.Stop()
	}
	r.running.Wait()
}

// getVersions returns the versions of the objects in a namespace so far. The versions of each kind are in order.
func (r *objectHistory) getVersions(namespace string) ([]version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]version{}, r.versions[namespace]...), r.broken
}

// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/upkeep"
)

// Get returns an object for callers that need its content. The content is kept from run to run, and is only read again
// when a watch reports another version.
func (t *Session) Get(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	object, known := t.object(ref)
	if known {
		if live := t.memory.content(object); live != nil && t.seenAlready(ref) == nil {
			return live, nil
		}
	}
	live, err := t.read(ctx, ref)
	if known && live != nil {
		t.memory.hold(object, live)
	}
	return live, err
}

// read reads an object, at most once in a run.
func (t *Session) read(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	if live := t.seenAlready(ref); live != nil {
		return live, nil
	}
	if t.run.Cluster == nil {
		return nil, errNoTarget()
	}
	live, err := t.run.Read(ctx, t.run.Cluster, ref)
	if err != nil || live == nil {
		return nil, err
	}
	t.see(ref, live)
	return live, nil
}

// Ready judges an object by the response to its write. Without one it reads the object, unless it was ready and has not
// changed since.
func (t *Session) Ready(ctx context.Context, ref apply.Ref, by Judge) (string, error) {
	object, known := t.object(ref)
	if t.seenAlready(ref) == nil && (by == nil && upkeep.ReadyAtOnce(ref.GVK().GroupKind()) || known && t.memory.wasReady(object)) {
		return "", nil
	}
	live, err := t.read(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case live == nil:
		return "does not exist", nil
	}
	if by == nil {
		by = func(live *unstructured.Unstructured) (string, error) { return t.byDefault(ctx, live) }
	}
	reason, err := by(live)
	if known {
		t.memory.judged(object, live.GetResourceVersion(), reason == "" && err == nil)
	}
	return reason, err
}

// byDefault judges by the default rules of package readiness.
func (t *Session) byDefault(ctx context.Context, live *unstructured.Unstructured) (reason string, err error) {
	result := t.run.Judge(ctx, live)
	if result.State == readiness.StateFailed {
		return "", &ObjectError{Reason: result.Reason, Final: neverRecovers[live.GroupVersionKind().GroupKind()]}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if after := result.RecheckAfter; t.recheck == 0 || after != 0 && after < t.recheck {
		t.recheck = after
	}
	return result.Reason, nil
}

// ObjectError reports that an object has failed according to its own status.
type ObjectError struct {
	Reason string
	Final  bool // it will not become ready any more
}

func (e *ObjectError) Error() string { return e.Reason }

// neverRecovers are the kinds whose objects stay failed. Another object has to replace a failed one.
var neverRecovers = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                   true,
	{Kind: "PersistentVolumeClaim"}: true,
	{Group: "batch", Kind: "Job"}:   true,
}

// met records the outcome of an object, so that later events of a watch can be compared with it.
func (t *Session) met(component string, o apply.Outcome, heard bool) {
	object, known := t.object(o.Ref)
	if o.Err != nil || !known {
		return
	}
	if heard {
		t.mu.Lock()
		t.owners[object] = component
		t.mu.Unlock()
	}
	if o.Live != nil {
		t.see(o.Ref, o.Live)
		t.memory.saw(object, o.Live.GetResourceVersion(), heard)
	} else if seen, there := t.run.Cluster.Watcher().Get(object.Resource, object.NamespacedName); there {
		t.memory.saw(object, seen.ResourceVersion, heard)
	}
}

// object returns the name under which watches know an object. It returns false if the target does not know the kind.
func (t *Session) object(ref apply.Ref) (watch.Object, bool) {
	gvk := ref.GVK()
	resource, known := t.resources.Load(gvk)
	if !known {
		if t.run.Cluster == nil {
			return watch.Object{}, false
		}
		mapping, err := t.run.Cluster.Mapping(gvk)
		if err != nil || mapping == nil {
			return watch.Object{}, false
		}
		resource = mapping.Resource
		t.resources.Store(gvk, resource)
	}
	return watch.Object{Resource: resource.(schema.GroupVersionResource), NamespacedName: ref.Key()}, true
}

// Changed forgets what this run has read of an object.
func (t *Session) Changed(ref apply.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, ref)
}

// OwnerOf returns the component that listens to an object, if the object was applied in this run.
func (t *Session) OwnerOf(o watch.Object) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[o]
}

func (t *Session) see(ref apply.Ref, live *unstructured.Unstructured) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[ref] = live
}

func (t *Session) seenAlready(ref apply.Ref) *unstructured.Unstructured {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[ref]
}

// Objects returns all objects in the inventory.
func (t *Session) Objects() map[watch.Object]bool {
	out := map[watch.Object]bool{}
	for _, entry := range t.Inventory().Entries {
		if object, known := t.object(entry.Ref()); known {
			out[object] = true
		}
	}
	return out
}

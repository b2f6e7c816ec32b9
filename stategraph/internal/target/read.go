// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// Get returns an object, and stores the object for later runs. If a watch shows that a stored object is up to date, Get
// returns the stored object without a request. If the object is gone because it has finished its work, Get returns
// readiness.ErrFinished.
func (t *Session) Get(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	object, known := t.toObject(ref)
	if known {
		if live := t.memory.getContent(object); live != nil && t.getSeen(ref) == nil {
			return live, nil
		}
	}
	live, err := t.read(ctx, ref)
	if known && live != nil {
		t.memory.storeContent(object, live)
	}
	if err == nil && live == nil && t.hasFinished(ref) {
		return nil, readiness.ErrFinished
	}
	return live, err
}

// read returns an object. It requests each object at most once in a run.
func (t *Session) read(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	if live := t.getSeen(ref); live != nil {
		return live, nil
	}
	if t.run.Cluster == nil {
		return nil, errNoTarget()
	}
	live, err := t.run.Cluster.Read(ctx, ref)
	if err != nil || live == nil {
		return nil, err
	}
	t.storeSeen(ref, live)
	return live, nil
}

// Ready returns the reason why an object is not ready, or "" if it is ready. If this run has written the object, Ready
// checks the object that the API server returned. Otherwise Ready reads the object, unless the object was ready in an
// earlier run and has not changed since then.
func (t *Session) Ready(ctx context.Context, ref apply.Ref, by ReadinessFunc) (string, error) {
	object, known := t.toObject(ref)
	if t.getSeen(ref) == nil && (by == nil && managed.IsReadyOnCreation(ref.GVK().GroupKind()) || managed.WasReady(t.run, ref)) {
		return "", nil
	}
	live, err := t.read(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case live == nil && t.hasFinished(ref):
		return "", nil
	case live == nil:
		return "does not exist", nil
	}
	if t.applier != nil {
		t.applier.RecordFinish(live)
	}
	if by == nil {
		by = func(live *unstructured.Unstructured) (string, error) { return t.checkByDefaultRules(ctx, live) }
	}
	reason, err := by(live)
	if known {
		t.memory.recordChecked(object, observe.GetVersion(live))
	}
	if reason == "" && err == nil {
		managed.RecordReady(t.run, ref, live)
	}
	return reason, err
}

// hasFinished reports whether the absence of an object means that it has finished its work. An object that is known to
// have failed has not.
func (t *Session) hasFinished(ref apply.Ref) bool {
	if t.applier == nil {
		return false
	}
	return t.applier.GetFinish(ref).IsDone()
}

// checkByDefaultRules checks an object with the default rules of package readiness.
func (t *Session) checkByDefaultRules(ctx context.Context, live *unstructured.Unstructured) (reason string, err error) {
	result := t.run.CheckReadiness(ctx, live)
	if result.State == readiness.StateFailed {
		return "", &ObjectError{Reason: result.Message, Final: neverRecovers[live.GroupVersionKind().GroupKind()]}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if after := result.RecheckAfter; t.recheckAfter == 0 || after != 0 && after < t.recheckAfter {
		t.recheckAfter = after
	}
	return result.Message, nil
}

// ObjectError reports that an object has failed according to its own status.
type ObjectError struct {
	Reason string
	Final  bool // the object will never be ready
}

func (e *ObjectError) Error() string { return e.Reason }

// neverRecovers contains the kinds whose objects cannot recover after a failure. Only a new object can replace them.
var neverRecovers = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                   true,
	{Kind: "PersistentVolumeClaim"}: true,
	{Group: "batch", Kind: "Job"}:   true,
}

// recordApplied records the version of an object after the object was applied, so that later watch events of this
// version are ignored.
func (t *Session) recordApplied(component string, o apply.ApplyResult, listened bool) {
	object, known := t.toObject(o.Ref)
	if o.Err != nil || !known {
		return
	}
	if listened {
		t.mu.Lock()
		t.owners[object] = component
		t.mu.Unlock()
	}
	if o.Live != nil {
		t.storeSeen(o.Ref, o.Live)
		t.memory.recordSeen(object, observe.GetVersion(o.Live), listened)
	} else if seen, there := t.run.Cluster.Watcher().Get(object.Resource, object.NamespacedName); there {
		t.memory.recordSeen(object, seen.Version(), listened)
	}
}

// toObject converts a reference to the key that identifies the object in watches. It returns false if the target does
// not know the kind.
func (t *Session) toObject(ref apply.Ref) (observe.Object, bool) {
	gvk := ref.GVK()
	resource, known := t.resources.Load(gvk)
	if !known {
		if t.run.Cluster == nil {
			return observe.Object{}, false
		}
		served, err := t.run.Cluster.FindResource(ref)
		if err != nil {
			return observe.Object{}, false
		}
		resource = served
		t.resources.Store(gvk, resource)
	}
	return observe.Object{Resource: resource.(schema.GroupVersionResource), NamespacedName: ref.Key()}, true
}

// Forget discards the content of an object that this run has read.
func (t *Session) Forget(ref apply.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, ref)
}

// GetOwner returns the component that applied an object in this run and listens to the object. If there is no such
// component, it returns "".
func (t *Session) GetOwner(o observe.Object) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[o]
}

func (t *Session) storeSeen(ref apply.Ref, live *unstructured.Unstructured) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[ref] = live
}

func (t *Session) getSeen(ref apply.Ref) *unstructured.Unstructured {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[ref]
}

// Objects returns the set of all objects in the inventory. It omits the objects of kinds that the target does not know.
func (t *Session) Objects() map[observe.Object]bool {
	out := map[observe.Object]bool{}
	for _, entry := range t.Inventory().Entries {
		if object, known := t.toObject(entry.Ref()); known {
			out[object] = true
		}
	}
	return out
}

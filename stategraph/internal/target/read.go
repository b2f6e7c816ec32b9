// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/upkeep"
)

// Get returns an object, and stores the object for later runs. If a watch shows that a stored object is up to date, Get
// returns the stored object without a request. If the object is gone because it has finished its work, Get returns
// readiness.ErrDone.
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
	if err == nil && live == nil && t.hasFinished(ref) {
		return nil, readiness.ErrDone
	}
	return live, err
}

// read returns an object. It requests each object at most once in a run.
func (t *Session) read(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	if live := t.seenAlready(ref); live != nil {
		return live, nil
	}
	if t.run.Cluster == nil {
		return nil, errNoTarget()
	}
	live, err := t.run.Cluster.Read(ctx, ref)
	if err != nil || live == nil {
		return nil, err
	}
	t.see(ref, live)
	return live, nil
}

// Ready returns the reason why an object is not ready, or "" if it is ready. If this run has written the object, Ready
// checks the object that the API server returned. Otherwise Ready reads the object, unless the object was ready in an
// earlier run and has not changed since then.
func (t *Session) Ready(ctx context.Context, ref apply.Ref, by Judge) (string, error) {
	object, known := t.object(ref)
	if t.seenAlready(ref) == nil && (by == nil && upkeep.ReadyAtOnce(ref.GVK().GroupKind()) || upkeep.WasReady(t.run, ref)) {
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
		t.applier.Observe(live)
	}
	if by == nil {
		by = func(live *unstructured.Unstructured) (string, error) { return t.byDefault(ctx, live) }
	}
	reason, err := by(live)
	if known {
		t.memory.judged(object, observe.VersionOf(live))
	}
	if reason == "" && err == nil {
		upkeep.RecordReady(t.run, ref, live)
	}
	return reason, err
}

// hasFinished reports whether the absence of an object means that it has finished its work. An object that is known to
// have failed has not.
func (t *Session) hasFinished(ref apply.Ref) bool {
	if t.applier == nil {
		return false
	}
	return t.applier.Finish(ref).IsDone()
}

// byDefault checks an object with the default rules of package readiness.
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
	Final  bool // the object will never be ready
}

func (e *ObjectError) Error() string { return e.Reason }

// neverRecovers contains the kinds whose objects cannot recover after a failure. Only a new object can replace them.
var neverRecovers = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                   true,
	{Kind: "PersistentVolumeClaim"}: true,
	{Group: "batch", Kind: "Job"}:   true,
}

// met records the version of an object after the object was applied, so that later watch events of this version are
// ignored.
func (t *Session) met(component string, o apply.Outcome, listened bool) {
	object, known := t.object(o.Ref)
	if o.Err != nil || !known {
		return
	}
	if listened {
		t.mu.Lock()
		t.owners[object] = component
		t.mu.Unlock()
	}
	if o.Live != nil {
		t.see(o.Ref, o.Live)
		t.memory.saw(object, observe.VersionOf(o.Live), listened)
	} else if seen, there := t.run.Cluster.Watcher().Get(object.Resource, object.NamespacedName); there {
		t.memory.saw(object, seen.Version(), listened)
	}
}

// object converts a reference to the key that identifies the object in watches. It returns false if the target does not
// know the kind.
func (t *Session) object(ref apply.Ref) (observe.Object, bool) {
	gvk := ref.GVK()
	resource, known := t.resources.Load(gvk)
	if !known {
		if t.run.Cluster == nil {
			return observe.Object{}, false
		}
		served, err := t.run.Cluster.ResourceOf(ref)
		if err != nil {
			return observe.Object{}, false
		}
		resource = served
		t.resources.Store(gvk, resource)
	}
	return observe.Object{Resource: resource.(schema.GroupVersionResource), NamespacedName: ref.Key()}, true
}

// Changed discards the content of an object that this run has read.
func (t *Session) Changed(ref apply.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, ref)
}

// OwnerOf returns the component that applied an object in this run and listens to the object. If there is no such
// component, it returns "".
func (t *Session) OwnerOf(o observe.Object) string {
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

// Objects returns the set of all objects in the inventory. It omits the objects of kinds that the target does not know.
func (t *Session) Objects() map[observe.Object]bool {
	out := map[observe.Object]bool{}
	for _, entry := range t.Inventory().Entries {
		if object, known := t.object(entry.Ref()); known {
			out[object] = true
		}
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

type object = unstructured.Unstructured

var numbers atomic.Int64

// manifest returns an object in the namespace default with a new name and the given body, which is JSON without the
// outer braces.
func manifest(kind schema.GroupVersionKind, body string) *object {
	GinkgoHelper()
	obj := &object{}
	Expect(json.Unmarshal([]byte("{"+body+"}"), &obj.Object)).To(Succeed())
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace("default")
	obj.SetName("t" + strconv.FormatInt(numbers.Add(1), 10))
	return obj
}

// driftEnv is an item with its own watcher.
type driftEnv struct {
	owner    ownership.Owner
	w        *observe.Watcher
	stop     func()
	sentinel map[schema.GroupVersionKind]*object

	mu     sync.Mutex
	events []observe.Drift
}

func newLab(config *rest.Config) *driftEnv {
	GinkgoHelper()
	uid := types.UID("item-" + strconv.FormatInt(numbers.Add(1), 10))
	l := &driftEnv{
		owner:    ownership.Owner{UID: uid, Landscape: "landscape", Namespace: "shop", Name: "web"},
		sentinel: map[schema.GroupVersionKind]*object{},
	}
	var err error
	l.w, err = observe.NewForConfig(config, observe.Options{})
	Expect(err).NotTo(HaveOccurred())
	l.w.OnDrift(func(e observe.Drift) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events = append(l.events, e)
	})
	ctx, cancel := context.WithCancel(GinkgoT().Context())
	l.w.Start(ctx)
	l.stop = func() { cancel(); l.w.Wait() }
	DeferCleanup(l.stop)
	return l
}

// send applies a manifest under the field manager of the item, and returns the expected state for the watcher. The API
// server's response replaces obj.
func (l *driftEnv) send(ctx context.Context, obj *object) observe.BaselineObject {
	GinkgoHelper()
	l.owner.Mark(obj)
	applyAs(ctx, obj, l.owner.FieldManager())
	return observe.BaselineObject{
		Object:          observe.Object{Resource: resourceOf(obj.GroupVersionKind()), NamespacedName: client.ObjectKeyFromObject(obj)},
		UID:             obj.GetUID(),
		Fingerprint:     ownership.ComputeFingerprint(obj, l.owner.FieldManager()),
		ResourceVersion: obj.GetResourceVersion(),
	}
}

// run makes the calls of an item's run in the same order: Suspend, Watch, apply and SetBaseline. It returns the applied
// objects.
func (l *driftEnv) run(ctx context.Context, manifests ...*object) []*object {
	GinkgoHelper()
	l.w.Suspend(l.owner.UID)
	var expected []observe.BaselineObject
	var stored []*object
	for _, m := range manifests {
		coverage, err := l.w.Watch(ctx, resourceOf(m.GroupVersionKind()), m.GetNamespace())
		Expect(err).NotTo(HaveOccurred())
		Expect(coverage.Contains(m.GetNamespace())).To(BeTrue(), coverage.Message)
		obj := m.DeepCopy()
		expected = append(expected, l.send(ctx, obj))
		stored = append(stored, obj)
	}
	l.w.SetBaseline(l.owner.UID, expected)
	return stored
}

// waitUntilProcessed waits until the watcher has processed all writes to objects of a kind that were made before the
// call.
func (l *driftEnv) waitUntilProcessed(ctx context.Context, kind schema.GroupVersionKind) {
	GinkgoHelper()
	s := l.sentinel[kind]
	if s == nil {
		s = manifest(kind, sentinels[kind])
		s.SetLabels(map[string]string{ownership.LabelItem: "sentinel"})
		Expect(c.Create(ctx, s)).To(Succeed())
		l.sentinel[kind] = s
	} else {
		s.SetAnnotations(map[string]string{"n": strconv.FormatInt(numbers.Add(1), 10)})
		Expect(c.Update(ctx, s)).To(Succeed())
	}
	Eventually(func() string {
		seen, _ := l.w.Get(resourceOf(kind), client.ObjectKeyFromObject(s))
		return seen.ResourceVersion
	}).WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).Should(Equal(s.GetResourceVersion()))
}

// collectDrifts waits until all earlier writes are processed, and returns the events since its last call.
func (l *driftEnv) collectDrifts(ctx context.Context, kind schema.GroupVersionKind) []observe.Drift {
	GinkgoHelper()
	l.waitUntilProcessed(ctx, kind)
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.events
	l.events = nil
	return out
}

// applyAs applies obj by forced server-side apply under the given field manager. The API server's response replaces
// obj.
func applyAs(ctx context.Context, obj *object, manager string) {
	GinkgoHelper()
	obj.SetManagedFields(nil)
	obj.SetResourceVersion("")
	Expect(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}

// edit is a change of an object by another client.
type edit func(ctx context.Context, obj *object)

// hand is the field manager of the edits that specify no other field manager.
const hand = client.FieldOwner("hand")

func patchWith(kind types.PatchType, body string, opts ...client.PatchOption) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		Expect(c.Patch(ctx, obj.DeepCopy(), client.RawPatch(kind, []byte(body)), append(opts, hand)...)).To(Succeed())
	}
}

func merge(body string) edit { return patchWith(types.MergePatchType, body) }

func patchWithOperations(body string) edit { return patchWith(types.JSONPatchType, body) }

func patchStrategic(body string) edit { return patchWith(types.StrategicMergePatchType, body) }

// mergeAs returns an edit that merges the given body into the object under the given field manager.
func mergeAs(manager, body string) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		Expect(c.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner(manager))).To(Succeed())
	}
}

// mergeSubresource returns an edit that merges the given body into a subresource.
func mergeSubresource(subresource, body string) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		patch := client.RawPatch(types.MergePatchType, []byte(body))
		Expect(c.SubResource(subresource).Patch(ctx, obj.DeepCopy(), patch, hand)).To(Succeed())
	}
}

// replaceWith returns an edit that reads, changes and replaces the whole object.
func replaceWith(change func(obj *object)) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		fresh := obj.DeepCopy()
		Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), fresh)).To(Succeed())
		change(fresh)
		Expect(c.Update(ctx, fresh, hand)).To(Succeed())
	}
}

func runInOrder(edits ...edit) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		for _, e := range edits {
			e(ctx, obj)
		}
	}
}

// applied returns an edit that applies the given body with force under the given field manager.
func applied(manager, body string) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		other := manifest(obj.GroupVersionKind(), body)
		other.SetName(obj.GetName())
		applyAs(ctx, other, manager)
	}
}

// read reads the stored object.
func read(ctx context.Context, obj *object) *object {
	GinkgoHelper()
	fresh := &object{}
	fresh.SetGroupVersionKind(obj.GroupVersionKind())
	Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), fresh)).To(Succeed())
	return fresh
}

// key reads an object and returns its fingerprint for the item.
func (l *driftEnv) key(ctx context.Context, obj *object) ownership.Fingerprint {
	GinkgoHelper()
	return ownership.ComputeFingerprint(read(ctx, obj), l.owner.FieldManager())
}

// inVersion returns an edit that makes a change through another API version of the kind.
func inVersion(version string, change edit) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		gvk := obj.GroupVersionKind()
		gvk.Version = version
		other := &object{}
		other.SetGroupVersionKind(gvk)
		other.SetNamespace(obj.GetNamespace())
		other.SetName(obj.GetName())
		change(ctx, other)
	}
}

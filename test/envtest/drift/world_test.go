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

// manifest returns an object in the namespace default with a new name. The parameter `body` is JSON without the outer
// braces.
func manifest(kind schema.GroupVersionKind, body string) *object {
	GinkgoHelper()
	obj := &object{}
	Expect(json.Unmarshal([]byte("{"+body+"}"), &obj.Object)).To(Succeed())
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace("default")
	obj.SetName("t" + strconv.FormatInt(numbers.Add(1), 10))
	return obj
}

// lab is an item with its own watcher.
type lab struct {
	owner    ownership.Owner
	w        *observe.Watcher
	stop     func()
	sentinel map[schema.GroupVersionKind]*object

	mu     sync.Mutex
	events []observe.Drift
}

func newLab(config *rest.Config) *lab {
	GinkgoHelper()
	uid := types.UID("item-" + strconv.FormatInt(numbers.Add(1), 10))
	l := &lab{
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
func (l *lab) send(ctx context.Context, obj *object) observe.Owned {
	GinkgoHelper()
	l.owner.Stamp(obj)
	applyAs(ctx, obj, l.owner.Manager())
	return observe.Owned{
		Object:          observe.Object{Resource: resourceOf(obj.GroupVersionKind()), NamespacedName: client.ObjectKeyFromObject(obj)},
		UID:             obj.GetUID(),
		Key:             ownership.KeyOf(obj, l.owner.Manager()),
		ResourceVersion: obj.GetResourceVersion(),
	}
}

// run makes the calls of an item's run in the same order: Hold, Watch, apply and Expect. It returns the applied
// objects.
func (l *lab) run(ctx context.Context, manifests ...*object) []*object {
	GinkgoHelper()
	l.w.Suspend(l.owner.UID)
	var expected []observe.Owned
	var stored []*object
	for _, m := range manifests {
		coverage, err := l.w.Watch(ctx, resourceOf(m.GroupVersionKind()), m.GetNamespace())
		Expect(err).NotTo(HaveOccurred())
		Expect(coverage.Covers(m.GetNamespace())).To(BeTrue(), coverage.Reason)
		obj := m.DeepCopy()
		expected = append(expected, l.send(ctx, obj))
		stored = append(stored, obj)
	}
	l.w.SetBaseline(l.owner.UID, expected)
	return stored
}

// settle waits until the watcher has processed all writes to objects of a kind that were made before the call.
func (l *lab) settle(ctx context.Context, kind schema.GroupVersionKind) {
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

// drifted waits until all earlier writes are processed, and returns the events since its last call.
func (l *lab) drifted(ctx context.Context, kind schema.GroupVersionKind) []observe.Drift {
	GinkgoHelper()
	l.settle(ctx, kind)
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

func patched(kind types.PatchType, body string, opts ...client.PatchOption) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		Expect(c.Patch(ctx, obj.DeepCopy(), client.RawPatch(kind, []byte(body)), append(opts, hand)...)).To(Succeed())
	}
}

func merge(body string) edit { return patched(types.MergePatchType, body) }

func operations(body string) edit { return patched(types.JSONPatchType, body) }

func strategic(body string) edit { return patched(types.StrategicMergePatchType, body) }

// The function `as` returns an edit that merges the given body into the object under the given field manager.
func as(manager, body string) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		Expect(c.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner(manager))).To(Succeed())
	}
}

// sub returns an edit that merges the given body into a subresource.
func sub(subresource, body string) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		patch := client.RawPatch(types.MergePatchType, []byte(body))
		Expect(c.SubResource(subresource).Patch(ctx, obj.DeepCopy(), patch, hand)).To(Succeed())
	}
}

// put returns an edit that reads, changes and replaces the whole object.
func put(change func(obj *object)) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		fresh := obj.DeepCopy()
		Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), fresh)).To(Succeed())
		change(fresh)
		Expect(c.Update(ctx, fresh, hand)).To(Succeed())
	}
}

func inOrder(edits ...edit) edit {
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

// key reads an object and returns its ownership key for the item.
func (l *lab) key(ctx context.Context, obj *object) ownership.Key {
	GinkgoHelper()
	return ownership.KeyOf(read(ctx, obj), l.owner.Manager())
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

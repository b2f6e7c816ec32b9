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
	"github.com/deployerkit/deployerkit/apply/watch"
)

type object = unstructured.Unstructured

var numbers atomic.Int64

// manifest is an object in namespace default with a fresh name. body is JSON without the outer braces.
func manifest(kind schema.GroupVersionKind, body string) *object {
	GinkgoHelper()
	obj := &object{}
	Expect(json.Unmarshal([]byte("{"+body+"}"), &obj.Object)).To(Succeed())
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace("default")
	obj.SetName("t" + strconv.FormatInt(numbers.Add(1), 10))
	return obj
}

// lab is an item with a watcher of its own.
type lab struct {
	owner    ownership.Owner
	w        *watch.Watcher
	stop     func()
	sentinel map[schema.GroupVersionKind]*object

	mu     sync.Mutex
	events []watch.Event
}

func newLab(config *rest.Config) *lab {
	GinkgoHelper()
	uid := types.UID("item-" + strconv.FormatInt(numbers.Add(1), 10))
	l := &lab{
		owner:    ownership.Owner{UID: uid, Landscape: "landscape", Namespace: "shop", Name: "web"},
		sentinel: map[schema.GroupVersionKind]*object{},
	}
	var err error
	l.w, err = watch.NewForConfig(config, watch.Options{})
	Expect(err).NotTo(HaveOccurred())
	l.w.Subscribe(func(e watch.Event) {
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

// send applies a manifest as the item does and returns the expected state. obj is replaced by the response.
func (l *lab) send(ctx context.Context, obj *object) watch.Expected {
	GinkgoHelper()
	l.owner.Stamp(obj)
	applyAs(ctx, obj, l.owner.Manager())
	return watch.Expected{
		Object:          watch.Object{Resource: resourceOf(obj.GroupVersionKind()), NamespacedName: client.ObjectKeyFromObject(obj)},
		UID:             obj.GetUID(),
		Key:             ownership.KeyOf(obj, l.owner.Manager()),
		ResourceVersion: obj.GetResourceVersion(),
	}
}

// run does the same as an item's run: hold, watch, apply, expect. It returns what is stored.
func (l *lab) run(ctx context.Context, manifests ...*object) []*object {
	GinkgoHelper()
	l.w.Hold(l.owner.UID)
	var expected []watch.Expected
	var stored []*object
	for _, m := range manifests {
		coverage, err := l.w.Watch(ctx, resourceOf(m.GroupVersionKind()), m.GetNamespace())
		Expect(err).NotTo(HaveOccurred())
		Expect(coverage.Covers(m.GetNamespace())).To(BeTrue(), coverage.Reason)
		obj := m.DeepCopy()
		expected = append(expected, l.send(ctx, obj))
		stored = append(stored, obj)
	}
	l.w.Expect(l.owner.UID, expected)
	return stored
}

// settle returns when the watch has processed everything that was written to a kind before.
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

// drifted returns the events since the last call, after everything was processed.
func (l *lab) drifted(ctx context.Context, kind schema.GroupVersionKind) []watch.Event {
	GinkgoHelper()
	l.settle(ctx, kind)
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.events
	l.events = nil
	return out
}

// applyAs sends obj by forced server-side apply; obj becomes the answer.
func applyAs(ctx context.Context, obj *object, manager string) {
	GinkgoHelper()
	obj.SetManagedFields(nil)
	obj.SetResourceVersion("")
	Expect(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}

// edit is a change of an object by another client.
type edit func(ctx context.Context, obj *object)

// hand is the field manager of edits.
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

// as merges as another field manager.
func as(manager, body string) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		Expect(c.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner(manager))).To(Succeed())
	}
}

// sub merges into a subresource.
func sub(subresource, body string) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		patch := client.RawPatch(types.MergePatchType, []byte(body))
		Expect(c.SubResource(subresource).Patch(ctx, obj.DeepCopy(), patch, hand)).To(Succeed())
	}
}

// put reads, changes and writes the whole object.
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

// applied is another manager's apply of a body, forced.
func applied(manager, body string) edit {
	return func(ctx context.Context, obj *object) {
		GinkgoHelper()
		other := manifest(obj.GroupVersionKind(), body)
		other.SetName(obj.GetName())
		applyAs(ctx, other, manager)
	}
}

// read gives what is stored.
func read(ctx context.Context, obj *object) *object {
	GinkgoHelper()
	fresh := &object{}
	fresh.SetGroupVersionKind(obj.GroupVersionKind())
	Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), fresh)).To(Succeed())
	return fresh
}

// key is the item's key of what is stored.
func (l *lab) key(ctx context.Context, obj *object) ownership.Key {
	GinkgoHelper()
	return ownership.KeyOf(read(ctx, obj), l.owner.Manager())
}

// inVersion makes an edit through another API version of the kind.
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

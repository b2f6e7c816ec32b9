// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// env is the environment of a spec: one item in its own namespace, and an engine whose requests are counted.
type env struct {
	namespace string
	owner     ownership.Owner
	wire      *faultnet.Counter
	client    client.Client
	options   apply.Options

	mu     sync.Mutex
	events []apply.Event
	// stored is the inventory that a new process would find after a crash.
	stored      apply.Inventory
	checkpoints int
}

func newEnv(ctx context.Context) *env {
	w := &env{
		namespace: "w-" + uuid.NewString()[:8], wire: &faultnet.Counter{},
		owner: ownership.Owner{UID: types.UID(uuid.NewString()), Landscape: "landscape", Namespace: "items", Name: "item"},
	}
	Expect(direct.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
	w.newClient(nil)
	w.options = apply.Options{Watched: readingWatch{w, ctx}, Concurrency: 4, Events: w.event, Checkpoint: func(_ context.Context, inv apply.Inventory) error {
		w.checkpoints++
		w.store(inv)
		return nil
	}}
	return w
}

func (w *env) event(e apply.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// newOtherItem returns the environment of another item in the same namespace and cluster.
func (w *env) newOtherItem() *env {
	out := &env{namespace: w.namespace, wire: w.wire, client: w.client, options: w.options}
	out.owner = ownership.Owner{UID: types.UID(uuid.NewString()), Landscape: "landscape", Namespace: "items", Name: "other"}
	out.options.Watched, out.options.Checkpoint = readingWatch{out, w.options.Watched.(readingWatch).ctx}, nil
	out.options.Events = out.event
	return out
}

// newClient creates a new client for the engine. If `wrap` is not nil, it wraps the transport of the client.
func (w *env) newClient(wrap func(http.RoundTripper) http.RoundTripper) {
	wrapped := w.wire.Wrap(rest.CopyConfig(cfg))
	if wrap != nil {
		wrapped.Wrap(wrap)
	}
	w.client = newClient(wrapped)
}

// store stores the inventory as JSON, as it would be stored in a provider status.
func (w *env) store(inv apply.Inventory) {
	data, err := json.Marshal(inv)
	Expect(err).NotTo(HaveOccurred())
	w.stored = apply.Inventory{}
	Expect(json.Unmarshal(data, &w.stored)).To(Succeed())
}

func (w *env) newEngine() *apply.Engine {
	return apply.New(w.client, w.client.RESTMapper(), w.options)
}

// try applies the desired objects once, and stores the resulting inventory.
func (w *env) try(ctx context.Context, desired ...apply.Desired) (apply.Report, error) {
	inv, report, err := w.newEngine().Apply(ctx, w.owner, desired, w.stored)
	w.store(inv)
	return report, err
}

// apply applies the desired objects repeatedly, until the engine no longer waits for an object. If a call returns an
// error, the spec fails.
func (w *env) apply(ctx context.Context, desired ...apply.Desired) apply.Report {
	GinkgoHelper()
	var report apply.Report
	Eventually(func(g Gomega) {
		var err error
		report, err = w.try(ctx, desired...)
		if err != nil {
			StopTrying("apply").Wrap(err).Now()
		}
		g.Expect(report.Waiting).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPolling).Should(Succeed())
	return report
}

// delete deletes the objects of the item. It repeats the call until the call succeeds and the engine no longer waits
// for an object.
func (w *env) delete(ctx context.Context, groups ...apply.DeletionGroup) apply.Report {
	GinkgoHelper()
	var report apply.Report
	Eventually(func(g Gomega) {
		inv, got, err := w.newEngine().Delete(ctx, w.owner, w.stored, groups)
		w.store(inv)
		report = got
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(report.Waiting).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPolling).Should(Succeed())
	return report
}

// restoreInventory replaces the inventory by one that is restored from the marks of the named ConfigMaps.
func (w *env) restoreInventory(ctx context.Context, names ...string) {
	GinkgoHelper()
	w.stored = apply.Inventory{}
	for _, name := range names {
		entry, ours := managed.NewEntry(w.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"), w.get(ctx, name))
		Expect(ours).To(BeTrue(), name)
		w.stored.Entries = append(w.stored.Entries, entry)
	}
}

// recordRequests returns the requests that the engine sends while f runs.
func (w *env) recordRequests(f func()) faultnet.Counts {
	before := w.wire.Snapshot()
	f()
	return w.wire.Snapshot().Since(before)
}

// listReasons returns the reasons of the events that the engine has sent so far.
func (w *env) listReasons() []string {
	out := []string{}
	for _, e := range w.events {
		out = append(out, e.Reason)
	}
	return out
}

// listNames returns the names of the objects in the stored inventory.
func (w *env) listNames() []string {
	out := []string{}
	for _, e := range w.stored.Entries {
		out = append(out, e.Name)
	}
	return out
}

// configMap returns a desired ConfigMap.
func (w *env) configMap(name string, pairs ...string) apply.Desired {
	data := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		data[pairs[i]] = pairs[i+1]
	}
	return w.manifest("v1", "ConfigMap", name, map[string]any{"data": data})
}

func (w *env) configMaps(n int) []apply.Desired {
	out := []apply.Desired{}
	for i := range n {
		out = append(out, w.configMap(fmt.Sprintf("c%d", i), "key", "value"))
	}
	return out
}

func (w *env) manifest(apiVersion, kind, name string, body map[string]any) apply.Desired {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": w.namespace}}
	maps.Copy(object, body)
	return apply.Desired{Object: &unstructured.Unstructured{Object: object}}
}

// createForeign creates a ConfigMap under another field manager, so that it does not belong to the item.
func (w *env) createForeign(ctx context.Context, name string, pairs ...string) *unstructured.Unstructured {
	GinkgoHelper()
	obj := w.configMap(name, pairs...).Object
	Expect(direct.Create(ctx, obj, client.FieldOwner("another-client"))).To(Succeed())
	return obj
}

// get reads a ConfigMap. It returns nil if the ConfigMap does not exist.
func (w *env) get(ctx context.Context, name string) *corev1.ConfigMap {
	GinkgoHelper()
	out := &corev1.ConfigMap{}
	err := direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return out
}

// patchConfigMap patches a ConfigMap as a user with kubectl would.
func (w *env) patchConfigMap(ctx context.Context, name, patch string) {
	GinkgoHelper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	Expect(direct.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("hand"))).To(Succeed())
}

// readingWatch replaces the watch of objects with an owner label. It reads each object with a client whose requests are
// not counted. The objects are therefore never outdated.
type readingWatch struct {
	w   *env
	ctx context.Context // the context of the spec
}

func (l readingWatch) Get(resource schema.GroupVersionResource, name types.NamespacedName) (observe.State, bool) {
	gvk, err := direct.RESTMapper().KindFor(resource)
	if err != nil {
		return observe.State{}, false
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(gvk)
	if err := direct.Get(l.ctx, name, obj); err != nil || obj.Labels[ownership.LabelItem] == "" {
		return observe.State{}, false
	}
	return observe.State{UID: obj.UID, Item: types.UID(obj.Labels[ownership.LabelItem]), Fingerprint: ownership.ComputeFingerprint(obj, l.w.owner.FieldManager()), Deleting: obj.DeletionTimestamp != nil, Finalizers: obj.Finalizers}, true
}

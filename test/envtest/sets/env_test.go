// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// patience is the time limit of all waits. It is long, because the machine may be slow.
const patience = world.Patience

// env is a world with a manifest deployer. All sets are deployed to the control plane of the world.
type env struct {
	*world.World
}

func newEnv(ctx context.Context) *env {
	GinkgoHelper()
	w := &env{World: world.New(ctx, GinkgoTB(), cp, world.Options{Name: "sets", Landscaper: landscapertest.LandscaperOptions{Revision: contract.RevisionJobID}})}
	w.Start(manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport}))
	return w
}

// upgrade replaces the configuration of an item as Landscaper does, and waits for the end of the next job. It does not
// use the method Update of World, which sends a merge patch and thus removes the null values of manifests.
func (w *env) upgrade(ctx context.Context, p parameters) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	raw, err := json.Marshal(p.config())
	Expect(err).NotTo(HaveOccurred())
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the deployer writes the status at any time
		di := w.Get(ctx, p.Name)
		di.Spec.Configuration = &runtime.RawExtension{Raw: raw}
		return w.Client.Update(ctx, di, client.FieldOwner("landscaper"))
	})).To(Succeed())
	return w.RunAgain(ctx, p.Name)
}

// hasSucceeded matches an item whose last run has succeeded.
func hasSucceeded() gomegatypes.GomegaMatcher {
	return WithTransform(func(di *lsv1alpha1.DeployItem) string {
		if di.Status.Phase == lsv1alpha1.DeployItemPhases.Succeeded {
			return ""
		}
		return fmt.Sprintf("%s: %+v %+v", di.Status.Phase, di.Status.LastError, di.Status.Conditions)
	}, BeEmpty())
}

// getWrites returns the writes to the objects of a set since a snapshot.
func (w *env) getWrites(before faultnet.Counts, p parameters) faultnet.Counts {
	out := faultnet.Counts{}
	for request, n := range w.Counter.Snapshot().Since(before).OnlyWrites() {
		if p.owns(request.Namespace) || p.owns(request.Name) {
			out[request] = n
		}
	}
	return out
}

// expectWrites checks the number of writes to the objects of a set. There must be no writes to other sets.
func (w *env) expectWrites(before faultnet.Counts, p parameters, want int) {
	GinkgoHelper()
	all := w.Counter.Snapshot().Since(before).OnlyWrites()
	Expect(w.getWrites(before, p).Sum()).To(Equal(want), "writes: %s", all)
	Expect(all.Sum()).To(Equal(want), "writes: %s", all)
}

// migrateStorage makes the API server store all custom resources of the set in the version v1, so that their
// definitions may drop the other version. The managedFields of the objects still name the version in which the item
// applied them.
func (w *env) migrateStorage(ctx context.Context, p parameters) {
	GinkgoHelper()
	for _, obj := range p.listCustomResources() {
		Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		Expect(obj.GetManagedFields()).To(ContainElement(HaveField("APIVersion", p.Group+"/v1alpha1")), keyOf(obj))
		Expect(w.Client.Update(ctx, obj)).To(Succeed())
	}
	body := client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1"]}}`))
	for _, obj := range p.renderManifests() {
		if obj.GroupVersionKind() == definitions {
			Expect(w.Client.Status().Patch(ctx, obj, body)).To(Succeed())
		}
	}
}

// expectMigrated checks that the managedFields of the custom resources do not name the removed version, and that an
// event reports the change.
func (w *env) expectMigrated(ctx context.Context, p parameters) {
	GinkgoHelper()
	for _, obj := range p.listCustomResources() {
		if !p.Removed {
			return
		}
		Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		Expect(obj.GetManagedFields()).To(HaveEach(HaveField("APIVersion", p.Group+"/v1")), keyOf(obj))
		Eventually(w.listEvents(ctx, apply.ReasonMigrated)).WithContext(ctx).WithTimeout(patience).Should(ContainElement(ContainSubstring(obj.GetName())), keyOf(obj))
	}
}

// listEvents returns a function for Eventually that reads the texts of all events with a reason.
func (w *env) listEvents(ctx context.Context, reason string) func(Gomega) []string {
	return func(g Gomega) (out []string) {
		events := &eventsv1.EventList{}
		g.Expect(w.Client.List(ctx, events, client.InNamespace(w.Namespace))).To(Succeed())
		for i := range events.Items {
			if events.Items[i].Reason == reason {
				out = append(out, events.Items[i].Note)
			}
		}
		return out
	}
}

// expectUpgradeWrites checks the writes of an upgrade. An object that changed needs one write. If the managedFields
// contain an API version that the cluster no longer serves, it needs another one, and two more if the definition does
// not contain the version.
func (w *env) expectUpgradeWrites(ctx context.Context, before faultnet.Counts, old, p parameters) {
	GinkgoHelper()
	manifests := map[string]map[string]any{}
	for _, obj := range old.renderManifests() {
		manifests[keyOf(obj)] = obj.Object
	}
	least, most := 0, 0
	for _, obj := range p.renderManifests() {
		if !reflect.DeepEqual(manifests[keyOf(obj)], obj.Object) {
			least++
			most++
		}
		if obj.GroupVersionKind().Group == p.Group {
			most++
		}
		if obj.GroupVersionKind().Group == p.Group && p.Removed {
			most++ // the API server rejects the first write
		}
		delete(manifests, keyOf(obj))
	}
	removed := len(manifests)
	writes := w.getWrites(before, p)
	Expect(writes.Sum()).To(And(BeNumerically(">=", least+removed), BeNumerically("<=", most+removed)), "writes: %s", writes)
	for _, content := range manifests {
		obj := &unstructured.Unstructured{Object: content}
		obj.SetAPIVersion(p.Group + "/" + p.Version)
		Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(WithTransform(apierrors.IsNotFound, BeTrue()), keyOf(obj))
	}
}

// listCustomResources returns the custom resources of the set.
func (p parameters) listCustomResources() []*unstructured.Unstructured {
	GinkgoHelper()
	return slices.DeleteFunc(p.renderManifests(), func(obj *unstructured.Unstructured) bool { return obj.GroupVersionKind().Group != p.Group })
}

// managedBy is the label that another client changes.
const managedBy = "app.kubernetes.io/managed-by"

// verifyLabelsCorrected changes a label of all given objects that exist, waits until the deployer has corrected them,
// and checks that this took one write per object.
func (w *env) verifyLabelsCorrected(ctx context.Context, p parameters, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	before := w.Counter.Snapshot()
	var changed []*unstructured.Unstructured
	for _, obj := range objects {
		body := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+managedBy+`":"hand"}}}`))
		err := w.Client.Patch(ctx, obj, body, client.FieldOwner("kubectl-edit"))
		if apierrors.IsNotFound(err) && obj.GetKind() == "Job" {
			continue // the Job has deleted itself
		}
		Expect(err).NotTo(HaveOccurred(), keyOf(obj))
		changed = append(changed, obj)
	}
	for _, obj := range changed {
		Eventually(func(g Gomega) map[string]string {
			g.Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			return obj.GetLabels()
		}).WithContext(ctx).WithTimeout(patience).Should(HaveKeyWithValue(managedBy, "sets"), keyOf(obj))
	}
	w.WaitUntilQuiet(ctx)
	w.expectWrites(before, p, len(changed))
}

// verifyObjectsRestored deletes one object and changes a field of another one, waits until the deployer has corrected
// both, and counts the writes. The changed object takes one write. The deleted one takes two, because the first
// contains the UID of the deleted object, and the API server refuses it.
func (w *env) verifyObjectsRestored(ctx context.Context, p parameters, s set) {
	GinkgoHelper()
	before := w.Counter.Snapshot()
	deleted, changed := p.find(p.renderManifests(), s.deleted.kind, s.deleted.name), p.find(p.renderManifests(), s.changed.kind, s.changed.name)
	wanted := valueAt(changed.Object, s.changed.path)
	Expect(wanted).To(And(Not(BeNil()), Not(Equal(s.changed.value))))
	change, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/" + strings.Join(s.changed.path, "/"), "value": s.changed.value}})
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Client.Patch(ctx, changed, client.RawPatch(types.JSONPatchType, change), client.FieldOwner("kubectl-edit"))).To(Succeed())
	Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(deleted), deleted)).To(Succeed())
	uid := deleted.GetUID()
	Expect(w.Client.Delete(ctx, deleted)).To(Succeed())
	Eventually(func(g Gomega) any {
		g.Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(changed), changed)).To(Succeed())
		return valueAt(changed.Object, s.changed.path)
	}).WithContext(ctx).WithTimeout(patience).Should(BeEquivalentTo(wanted), "%s: %s", keyOf(changed), s.changed.path)
	Eventually(func(g Gomega) types.UID {
		g.Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(deleted), deleted)).To(Succeed())
		return deleted.GetUID()
	}).WithContext(ctx).WithTimeout(patience).ShouldNot(Equal(uid), keyOf(deleted))
	w.WaitUntilQuiet(ctx)
	w.expectWrites(before, p, 3)
}

// expectJobsRunOnce checks that each Job of the set has run exactly once.
func (w *env) expectJobsRunOnce(p parameters) {
	GinkgoHelper()
	for _, obj := range p.renderManifests() {
		if obj.GetKind() == "Job" {
			Expect(jobRuns.get(obj.GetNamespace()+"/"+obj.GetName())).To(Equal(1), keyOf(obj))
		}
	}
}

// expectReview checks that the API server asks the webhook of the set about a new object. It does not create the
// object.
func (w *env) expectReview(ctx context.Context, p parameters, s set) {
	GinkgoHelper()
	if s.review.path == "" {
		return
	}
	obj := &unstructured.Unstructured{Object: s.review.object(p)}
	obj.SetNamespace(p.Namespace)
	obj.SetName("reviewed")
	path := "/" + p.Name + "/" + s.review.path
	before := webhooks.requests.get(path)
	Eventually(func(g Gomega) int {
		g.Expect(w.Client.Create(ctx, obj.DeepCopy(), client.DryRunAll)).To(Succeed())
		return webhooks.requests.get(path)
	}).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">", before), path)
}

// removeInventory removes the inventory of an item, and waits until the deployer knows that.
func (w *env) removeInventory(ctx context.Context, name string) {
	GinkgoHelper()
	w.RemoveProviderStatus(ctx, name)
	Eventually(func(g Gomega) *runtime.RawExtension {
		seen := &lsv1alpha1.DeployItem{}
		g.Expect(w.Manager.GetClient().Get(ctx, w.Key(name), seen)).To(Succeed())
		return seen.Status.ProviderStatus
	}).WithContext(ctx).WithTimeout(patience).Should(BeNil())
}

// waitUntilFilled waits until other programs have filled the fields that the set expects.
func (w *env) waitUntilFilled(ctx context.Context, p parameters, s set) {
	GinkgoHelper()
	for _, want := range s.filled {
		obj := p.find(p.renderManifests(), want.kind, want.name)
		Eventually(func(g Gomega) any {
			g.Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			return valueAt(obj.Object, want.path)
		}).WithContext(ctx).WithTimeout(patience).Should(want.value, "%s: %s", keyOf(obj), want.path)
	}
}

// valueAt returns the value at a path. An element of the path is the name of a field, or the index of an item.
func valueAt(value any, path []string) any {
	for _, element := range path {
		switch container := value.(type) {
		case map[string]any:
			value = container[element]
		case []any:
			i, err := strconv.Atoi(element)
			if err != nil || i >= len(container) {
				return nil
			}
			value = container[i]
		default:
			return nil
		}
	}
	return value
}

// requestDeletion deletes an item without waiting for the end of the deletion.
func (w *env) requestDeletion(ctx context.Context, name string) {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	Expect(client.IgnoreNotFound(w.Client.Delete(ctx, di))).To(Succeed())
	_, err := w.Landscaper.Trigger(ctx, w.Key(name))
	Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
}

// waitUntilDeleted waits until an item no longer exists.
func (w *env) waitUntilDeleted(ctx context.Context, name string) {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{}
	Eventually(func() error { return w.Client.Get(ctx, w.Key(name), di) }).WithContext(ctx).WithTimeout(patience).
		Should(WithTransform(apierrors.IsNotFound, BeTrue()), func() string { return fmt.Sprintf("status: %+v", di.Status) })
}

// waitUntilNothingRemains waits until no object in the control plane belongs to the set.
func (w *env) waitUntilNothingRemains(ctx context.Context, p parameters) {
	GinkgoHelper()
	Eventually(func(g Gomega) []string { return listRemaining(ctx, g, p) }).WithContext(ctx).WithTimeout(patience).WithPolling(500 * time.Millisecond).Should(BeEmpty())
}

// listRemaining lists the objects of all kinds that belong to the set.
func listRemaining(ctx context.Context, g Gomega, p parameters) (out []string) {
	d, err := discovery.NewDiscoveryClientForConfig(cp.Config)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := metadata.NewForConfig(cp.Config)
	g.Expect(err).NotTo(HaveOccurred())
	lists, err := d.ServerPreferredResources()
	g.Expect(err).NotTo(HaveOccurred())
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Name == "events" {
				continue
			}
			found, err := objects.Resource(gv.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // the definition of the kind has just been deleted
			}
			g.Expect(err).NotTo(HaveOccurred(), resource.Name)
			for i := range found.Items {
				if obj := &found.Items[i]; p.owns(obj.Namespace) || p.owns(obj.Name) || gv.Group == p.Group {
					out = append(out, resource.Name+" "+client.ObjectKeyFromObject(obj).String())
				}
			}
		}
	}
	return out
}

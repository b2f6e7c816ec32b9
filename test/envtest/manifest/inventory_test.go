// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// removeInventory removes the provider status of an item, and waits until the deployer has received this change.
func (w *env) removeInventory(ctx context.Context, name string) {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"providerStatus":null}}`))
	Expect(w.Client.Status().Patch(ctx, di, patch)).To(Succeed())
	Eventually(func(g Gomega) {
		seen := &lsv1alpha1.DeployItem{}
		g.Expect(w.Manager.GetClient().Get(ctx, w.Key(name), seen)).To(Succeed())
		g.Expect(seen.Status.ProviderStatus).To(BeNil())
	}).WithTimeout(patience).Should(Succeed())
}

var _ = Describe("Lost inventory", func() {
	for _, revision := range contract.AllRevisions() {
		Context("under the "+string(revision)+" revision", func() {
			It("the next run restores the inventory from the labels, and prunes [F37]", func(ctx SpecContext) {
				w := newEnv(ctx, revision).start()
				w.CreateAndRun(ctx, "item", config(nil, w.configMaps(3, "a")...))
				w.removeInventory(ctx, "item")
				w.Update(ctx, "item", config(nil, w.configMaps(2, "b")...))
				w.waitUntilCorrected(ctx, "cm-1", "b")
				Expect(w.Read(ctx, "cm-2")).To(BeNil())
			}, SpecTimeout(5*time.Minute))

			It("a deletion restores the inventory from the labels, and keeps objects with the policy keep [F37]", func(ctx SpecContext) {
				w := newEnv(ctx, revision).start()
				w.CreateAndRun(ctx, "item", config(nil, w.configMaps(1, "a")[0], entry{"manifest": w.configMap("kept", map[string]string{"key": "a"}), "policy": "keep"}))
				w.removeInventory(ctx, "item")
				w.Delete(ctx, "item")
				Expect(w.Read(ctx, "cm-0")).To(BeNil())
				Expect(w.Read(ctx, "kept")).NotTo(BeNil())
			}, SpecTimeout(5*time.Minute))

			It("the next run restores objects of kinds that the configuration no longer contains [F37]", world.Slow, func(ctx SpecContext) {
				w := newEnv(ctx, revision).start()
				secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": w.Namespace, "name": "secret"}}
				account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": w.Namespace, "name": "account"}}
				w.CreateAndRun(ctx, "item", config(nil, w.configMaps(1, "a")[0], secret, entry{"manifest": account, "policy": "keep"}))
				w.removeInventory(ctx, "item")
				w.Update(ctx, "item", config(nil, w.configMaps(1, "b")...))
				w.waitUntilCorrected(ctx, "cm-0", "b")
				Expect(w.Client.Get(ctx, w.Key("secret"), &corev1.Secret{})).To(MatchError(apierrors.IsNotFound, "not found"))
				Expect(w.Client.Get(ctx, w.Key("account"), &corev1.ServiceAccount{})).To(Succeed(), "an object with the policy keep")
			}, SpecTimeout(5*time.Minute))

			for _, of := range []string{"Namespace", "PersistentVolumeClaim", "ConfigMap"} {
				for _, job := range []bool{false, true} {
					It(fmt.Sprintf("releases a %s that existed before the item when the item is deleted, %s [F29, F37]", of, map[bool]string{false: "at once", true: "after another run"}[job]), func(ctx SpecContext) {
						w := newEnv(ctx, revision).start()
						theirs, manifest := w.newExistingObject(of)
						Expect(w.Client.Create(ctx, theirs, client.FieldOwner("another-client"))).To(Succeed())
						manifests := config(map[string]any{"readinessChecks": map[string]any{"disableDefault": true}}, manifest)
						w.CreateAndRun(ctx, "item", manifests)
						w.removeInventory(ctx, "item")
						if job {
							w.Update(ctx, "item", manifests)
							w.RunAgain(ctx, "item")
						}
						w.Delete(ctx, "item")
						Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
						Expect(theirs.GetDeletionTimestamp()).To(BeNil())
						Expect(theirs.GetLabels()).NotTo(HaveKey(ownership.LabelItem))
						Expect(theirs.GetAnnotations()).NotTo(HaveKey(HavePrefix(ownership.Prefix)))
					}, SpecTimeout(5*time.Minute))
				}
			}
		})
	}

	It("a deletion restores the inventory although the configuration has become invalid [F37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(1, "a")...))
		w.removeInventory(ctx, "item")
		Expect(w.Landscaper.Update(ctx, w.Key("item"), map[string]any{"apiVersion": "v1", "kind": "Unknown"})).To(Succeed())
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("the restored inventory does not contain the copy of an object that another controller made, and the copy stays [F98]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(1, "a")...))
		original := &corev1.ConfigMap{}
		Expect(w.Client.Get(ctx, w.Key("cm-0"), original)).To(Succeed())
		mirror := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "mirror", Labels: original.Labels, Annotations: original.Annotations},
			Data:       original.Data,
		}
		Expect(w.Client.Create(ctx, mirror, client.FieldOwner("replicator"))).To(Succeed())
		w.removeInventory(ctx, "item")
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
		Expect(w.Read(ctx, "mirror")).NotTo(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("the restored inventory contains a Namespace that the item owns together with another item [F37]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		shared := w.Namespace + "-shared"
		w.CreateAndRun(ctx, "first", config(nil, namespace(shared, "first")))
		w.CreateAndRun(ctx, "item", config(nil, namespace(shared, "second")))
		Expect(w.liveNamespace(ctx, shared).Annotations).To(HaveKey(HavePrefix(ownership.Prefix + "owner-")))
		w.removeInventory(ctx, "item")
		w.Delete(ctx, "item")
		live := w.liveNamespace(ctx, shared)
		Expect(live.DeletionTimestamp).To(BeNil())
		Expect(live.Labels).NotTo(HaveKey("second"))
		Expect(live.Annotations).NotTo(HaveKey(HavePrefix(ownership.Prefix + "owner-")))
	}, SpecTimeout(5*time.Minute))

	It("kinds that the deployer may not list are skipped, and an event names them [F37]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		secrets := func(r faultnet.Request) bool { return r.Verb == "list" && r.Resource == "secrets" }
		w.Counter.SetInjector(faultnet.When(secrets, faultnet.ReturnStatus(http.StatusForbidden, metav1.StatusReasonForbidden)))
		w.start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(1, "a")...))
		w.removeInventory(ctx, "item")
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
		Eventually(w.events(ctx, "item")).WithTimeout(patience).Should(ContainElement(And(HavePrefix("SearchIncomplete: "), ContainSubstring("secrets"))))
	}, SpecTimeout(5*time.Minute))
})

// newExistingObject returns an object of a kind, and a manifest of the same object. The manifest adds a label to the
// object.
func (w *env) newExistingObject(kind string) (client.Object, map[string]any) {
	meta := metav1.ObjectMeta{Namespace: w.Namespace, Name: "theirs"}
	manifest := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{
		"namespace": w.Namespace, "name": "theirs", "labels": map[string]any{"ours": "yes"},
	}}
	switch kind {
	case "Namespace":
		meta.Namespace, meta.Name = "", w.Namespace+"-theirs"
		manifest["metadata"] = map[string]any{"name": meta.Name, "labels": map[string]any{"ours": "yes"}}
		return &corev1.Namespace{ObjectMeta: meta}, manifest
	case "PersistentVolumeClaim":
		spec := corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}
		manifest["spec"] = map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
		return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: spec}, manifest
	}
	manifest["data"] = map[string]any{"key": "ours"}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "theirs", "more": "theirs"}}, manifest
}

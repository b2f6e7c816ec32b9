// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/manifest"
)

// forged is the namespace of items whose status names objects that do not belong to the item.
const forged = "forged"

// updateProviderStatus changes the provider status of an item. A user who may write the status can make the same
// change.
func updateProviderStatus(ctx SpecContext, di *lsv1alpha1.DeployItem, change func(status map[string]json.RawMessage)) {
	GinkgoHelper()
	got, err := ls.Get(ctx, client.ObjectKeyFromObject(di))
	Expect(err).NotTo(HaveOccurred())
	status := map[string]json.RawMessage{}
	Expect(json.Unmarshal(got.Status.ProviderStatus.Raw, &status)).To(Succeed())
	change(status)
	raw := toJSON(status)
	before := got.DeepCopy()
	got.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	Expect(c.Status().Patch(ctx, got, client.MergeFrom(before))).To(Succeed())
}

func toJSON(value any) []byte {
	GinkgoHelper()
	raw, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return raw
}

// addToInventory returns a function that adds objects to the inventory of the manifest deployer.
func addToInventory(objects ...*corev1.ConfigMap) func(map[string]json.RawMessage) {
	return func(status map[string]json.RawMessage) {
		di := &lsv1alpha1.DeployItem{}
		di.Status.ProviderStatus = &runtime.RawExtension{Raw: toJSON(status)}
		decoded, err := manifest.DecodeStatus(di)
		Expect(err).NotTo(HaveOccurred())
		inventory := decoded.Inventory
		Expect(inventory.Entries).To(HaveLen(1))
		for _, obj := range objects {
			entry := inventory.Entries[0]
			entry.Name, entry.UID = obj.Name, obj.UID
			inventory.Entries = append(inventory.Entries, entry)
		}
		status["inventory"] = toJSON(inventory)
	}
}

// asLandscapers returns a function that adds objects to a status. The status has the format of Landscaper's own
// manifest deployer.
func asLandscapers(objects ...*corev1.ConfigMap) func(map[string]json.RawMessage) {
	return func(status map[string]json.RawMessage) {
		delete(status, "inventory")
		managed := []map[string]any{}
		for _, obj := range objects {
			managed = append(managed, map[string]any{"policy": "manage", "resource": map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "namespace": obj.Namespace, "name": obj.Name, "uid": string(obj.UID),
			}})
		}
		status["managedResources"] = toJSON(managed)
	}
}

var _ = Describe("Forged inventories", func() {
	It("the deletion of an item leaves objects of other owners that its status names, and an event reports this [F9]", func(ctx SpecContext) {
		namespace(ctx, forged)
		createTarget(ctx, forged, "target", cp.Kubeconfig())
		start(manifestDeployer, "--namespace="+forged)
		deploy := func(name string) (*lsv1alpha1.DeployItem, *corev1.ConfigMap) {
			di := newItem(forged, name, "target", configMap("forged-"+name))
			Expect(ls.Deploy(ctx, di)).To(Succeed())
			done, err := ls.WaitUntilFinished(ctx, client.ObjectKeyFromObject(di))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(done.Status.Phase)).To(Equal(succeeded), "lastError: %+v", done.Status.LastError)
			return di, get(ctx, "forged-"+name)
		}
		_, theirs := deploy("victim")
		unowned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "forged-unowned"}, Data: map[string]string{"k": "v"}}
		Expect(c.Create(ctx, unowned)).To(Succeed())
		for name, change := range map[string]func(map[string]json.RawMessage){
			"inventory": addToInventory(theirs, unowned), "landscapers": asLandscapers(theirs, unowned),
		} {
			di, own := deploy(name)
			updateProviderStatus(ctx, di, change)
			Expect(ls.Delete(ctx, client.ObjectKeyFromObject(di))).To(Succeed())
			Expect(ls.WaitForDeletion(ctx, client.ObjectKeyFromObject(di))).To(Succeed())
			for _, other := range []*corev1.ConfigMap{theirs, unowned} {
				now := get(ctx, other.Name)
				Expect(now).NotTo(BeNil())
				Expect([]any{now.UID, now.ResourceVersion}).To(Equal([]any{other.UID, other.ResourceVersion}))
			}
			if name == "inventory" {
				Expect(get(ctx, own.Name)).To(BeNil(), "its own object")
			}
			Eventually(sumNotDeletedEvents).WithContext(ctx).WithArguments(name).WithTimeout(patience).Should(BeNumerically(">=", 2))
			addFigure(fmt.Sprintf("objects deleted that a forged status names (%s)", name), "0", "0 of 2, with events")
		}
	}, SpecTimeout(5*patience))
})

// get returns a ConfigMap of the target, or nil if it does not exist.
func get(ctx SpecContext, name string) *corev1.ConfigMap {
	GinkgoHelper()
	out := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, out)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return out
}

// sumNotDeletedEvents returns the number of events of an item that report that an object was not deleted.
func sumNotDeletedEvents(g Gomega, ctx SpecContext, name string) (count int) {
	events := &eventsv1.EventList{}
	g.Expect(c.List(ctx, events, client.InNamespace(forged))).To(Succeed())
	for _, event := range events.Items {
		if event.Regarding.Name == name && event.Reason == apply.ReasonLeftAlone {
			count++
			if event.Series != nil {
				count += int(event.Series.Count) - 1
			}
		}
	}
	return count
}

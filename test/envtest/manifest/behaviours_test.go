// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Promises of the manifest deployer", func() {
	It("keeps all objects in the inventory when an apply fails halfway [D11, H-14]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(2, "a")...))
		w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "patch" && r.Name == "cm-2" },
			faultnet.ReturnStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)))
		// In this job, cm-0 is removed from the manifests, cm-1 changes, the write of cm-2 is rejected, and cm-3 is
		// new.
		di := w.Update(ctx, "item", config(nil, w.configMaps(4, "b")[1:]...))
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Message).To(ContainSubstring("ConfigMap " + w.Namespace + "/cm-2"))
		Expect(managedNames(di)).To(ConsistOf("cm-0", "cm-1", "cm-3"), "the rejected object was never created")
		Expect(w.Read(ctx, "cm-0")).NotTo(BeNil(), "no object is deleted before all writes have succeeded")
		Expect(w.Read(ctx, "cm-3")).NotTo(BeNil())

		w.Counter.SetInjector(nil)
		w.remove(ctx, "item")
		for _, name := range []string{"cm-0", "cm-1", "cm-2", "cm-3"} {
			Expect(w.Read(ctx, name)).To(BeNil(), name)
		}
	}, SpecTimeout(5*time.Minute))

	It("keeps an object in the inventory when its deletion is denied [D11, H-21]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(2, "a")...))
		w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "delete" },
			faultnet.ReturnStatus(http.StatusForbidden, metav1.StatusReasonForbidden)))
		di, err := w.Landscaper.Get(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Landscaper.Update(ctx, w.Key("item"), config(nil, w.configMaps(1, "a")...))).To(Succeed())
		_, err = w.Landscaper.Trigger(ctx, client.ObjectKeyFromObject(di))
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.item(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.LastError", HaveField("Message", ContainSubstring("cm-1"))))
		Expect(managedNames(w.item(ctx, "item")(NewGomega(Fail)))).To(ConsistOf("cm-0", "cm-1"))
		w.Counter.SetInjector(nil)
		Expect(w.Finished(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
		Expect(w.Read(ctx, "cm-1")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("rejects a Target of another type [D16]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "other"}}
		target.Spec.Type = "landscaper.gardener.cloud/helm-repository"
		target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"kubeconfig":"x"}`))
		Expect(w.Client.Create(ctx, target)).To(Succeed())
		w.Create(ctx, "item", config(nil, w.configMaps(1, "a")...), func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "other" })
		di := w.Finished(ctx, "item")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorConfigurationProblem))
		Expect(di.Status.LastError.Message).To(ContainSubstring(`spec.target: target configuration: type: is not "landscaper.gardener.cloud/kubernetes-cluster"`))
	}, SpecTimeout(5*time.Minute))

	It("names the objects that are not ready when the item times out [D12]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		di := w.readExample("readiness-timeout")
		raw, err := json.Marshal(removeField(di.Spec.Configuration.Raw, "readinessChecks"))
		Expect(err).NotTo(HaveOccurred())
		di.Spec.Configuration.Raw, di.Spec.Timeout = raw, &lsv1alpha1.Duration{Duration: 6 * time.Second}
		Expect(w.Landscaper.Deploy(ctx, di)).To(Succeed())
		di = w.Finished(ctx, "readiness-timeout")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Message).To(ContainSubstring("Service " + w.Namespace + "/readiness-timeout: the load balancer has no address yet"))
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
	}, SpecTimeout(5*time.Minute))

	It("deploys an item with a long name [H-17]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		name := strings.Repeat("long-", 40) + "name"
		exports := map[string]any{"exports": []any{map[string]any{
			"key": "k", "jsonPath": ".data.key", "fromResource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "cm-0", "namespace": w.Namespace},
		}}}
		di := w.CreateAndRun(ctx, name, config(map[string]any{"exports": exports}, w.configMaps(1, "a")...))
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(w.readExport(ctx, di)).To(HaveKeyWithValue("k", "a"))
		w.UpdateConfigMap(ctx, "cm-0", func(cm *corev1.ConfigMap) { cm.Data["key"] = "by hand" })
		Eventually(w.Data(ctx, "cm-0")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("key", "a")))
		w.remove(ctx, name)
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("leaves an object of another item unchanged, and names this item in the error [H-17]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "owner", config(nil, w.configMaps(1, "a")...))
		w.Create(ctx, "thief", config(nil, w.configMaps(1, "b")...))
		Eventually(w.item(ctx, "thief")).WithTimeout(patience).Should(HaveField("Status.LastError", HaveField("Message",
			ContainSubstring("ConfigMap "+w.Namespace+"/cm-0: belongs to deploy item "+w.Namespace+"/owner"))))
		Expect(w.Read(ctx, "cm-0").Data).To(HaveKeyWithValue("key", "a"))
		w.remove(ctx, "thief")
		Expect(w.Read(ctx, "cm-0").Data).To(HaveKeyWithValue("key", "a"))
	}, SpecTimeout(5*time.Minute))

	It("takes over the items of Landscaper's manifest deployer, and hands them back [D11]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "cm-0"}, Data: map[string]string{"key": "old", "gone": "x"}}
		old.Labels = map[string]string{"manifest.deployer.landscaper.gardener.cloud/deployitem": "item"}
		left, labelled := old.DeepCopy(), old.DeepCopy()
		left.Name, labelled.Name = "left", "cm-1"
		for _, cm := range []*corev1.ConfigMap{old, left, labelled} {
			Expect(w.Client.Create(ctx, cm, client.FieldOwner("manifest-deployer-controller"))).To(Succeed())
		}
		di := w.Landscaper.Item(w.Namespace, "item", w.Type, config(nil, w.configMaps(2, "new")...))
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		Expect(w.Landscaper.Create(ctx, di)).To(Succeed())
		status, err := json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": 0, "providerStatus": map[string]any{
			"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderStatus",
			"managedResources": []any{
				map[string]any{"policy": "manage", "resource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.Namespace, "name": "cm-0", "uid": old.UID}},
				map[string]any{"policy": "manage", "resource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.Namespace, "name": "left", "uid": left.UID}},
			},
		}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Client.Status().Patch(ctx, di, client.RawPatch("application/merge-patch+json", status))).To(Succeed())
		w.start()
		di = w.RunAgain(ctx, "item")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		for name, was := range map[string]*corev1.ConfigMap{"cm-0": old, "cm-1": labelled} {
			now := w.Read(ctx, name)
			Expect(now.UID).To(Equal(was.UID))
			Expect(now.Data).To(Equal(map[string]string{"key": "new"}))
			Expect(now.Labels).NotTo(HaveKey("manifest.deployer.landscaper.gardener.cloud/deployitem"))
		}
		Expect(w.Read(ctx, "left")).To(BeNil())
		Eventually(w.events(ctx, "item")).WithTimeout(patience).Should(ConsistOf(HavePrefix("TakenOver: ConfigMap " + w.Namespace + "/cm-1")))

		var back struct {
			APIVersion, Kind string
			ManagedResources []struct {
				Policy   string
				Resource corev1.ObjectReference
			}
		}
		Expect(json.Unmarshal(di.Status.ProviderStatus.Raw, &back)).To(Succeed())
		Expect(back.APIVersion).To(Equal("manifest.deployer.landscaper.gardener.cloud/v1alpha2"))
		Expect(back.Kind).To(Equal("ProviderStatus"))
		Expect(back.ManagedResources).To(ConsistOf(
			And(HaveField("Policy", "manage"), HaveField("Resource.UID", old.UID)), HaveField("Resource.UID", labelled.UID)))
	}, SpecTimeout(5*time.Minute))

	It("sends as many requests as the guide states", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		calls := func(f func()) []int {
			before := w.Counter.Snapshot()
			f()
			reads, writes := w.GetRequestCounts(before)
			return []int{reads, writes}
		}
		settled := func() { // settled waits until the watches have received the last write
			Eventually(func() []int { return calls(func() { w.RunAgain(ctx, "item") }) }).WithTimeout(patience).Should(Equal([]int{0, 0}))
		}
		Expect(calls(func() { w.CreateAndRun(ctx, "item", config(nil, w.configMaps(10, "a")...)) })).To(Equal([]int{1, 10}), "expected requests of the installation, with the read of kube-system")
		settled()
		Expect(calls(func() { w.Update(ctx, "item", config(nil, append(w.configMaps(9, "a"), w.configMaps(10, "b")[9])...)) })).
			To(Equal([]int{0, 1}), "one changed")
		settled()
		Expect(calls(func() { w.Update(ctx, "item", config(nil, w.configMaps(9, "a")...)) })).To(Equal([]int{1, 1}), "one removed")
		Expect(calls(func() { w.remove(ctx, "item") })).To(Equal([]int{9, 9}), "deletion")
	}, SpecTimeout(5*time.Minute))
})

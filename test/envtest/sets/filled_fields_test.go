// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"encoding/base64"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// filledValue is the value with which a stand-in fills the keys of a Secret.
var filledValue = base64.StdEncoding.EncodeToString([]byte("a value"))

// filledByOthers contains the fields of the set "filled" that other programs fill.
var filledByOthers = []field{
	{"ClusterRole", ":aggregated", []string{"rules"}, HaveLen(1)},
	{"ClusterRole", ":aggregated-null", []string{"rules"}, HaveLen(1)},
	{"Secret", "robot-token", []string{"data"}, And(HaveKey("token"), HaveKey("ca.crt"), HaveKey("namespace"))},
	{"Secret", "certificate", []string{"data"}, Equal(map[string]any{"tls.crt": filledValue, "tls.key": filledValue})},
	{"PersistentVolume", "-data", []string{"spec", "claimRef", "uid"}, Not(BeNil())},
	{"PersistentVolume", "-data", []string{"metadata", "finalizers"}, ContainElement("kubernetes.io/pv-protection")},
	{"PersistentVolumeClaim", "data", []string{"spec", "volumeName"}, HaveSuffix("-data")},
	{"PersistentVolumeClaim", "data", []string{"status", "phase"}, Equal("Bound")},
	{"PersistentVolumeClaim", "data", []string{"metadata", "finalizers"}, ContainElement("kubernetes.io/pvc-protection")},
	{"ValidatingWebhookConfiguration", "-webhook", []string{"webhooks", "0", "clientConfig", "caBundle"}, WithTransform(isBundle, BeTrue())},
}

var _ = Describe("Fields that controllers fill", func() {
	for _, strategy := range []string{"apply", "update", "patch", "mergeOverwrite"} {
		It("keeps the values that controllers fill in under the strategy "+strategy+", although the manifest contains the fields without a value [F97]", func(ctx SpecContext) {
			w := newEnv(ctx)
			p := newParameters("filled")
			p.Namespace, p.Strategy = w.Namespace, strategy
			s := set{name: p.Name, filled: filledByOthers}
			// A controller deletes a Secret for a token if its ServiceAccount does not exist yet.
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "owner"}}
			Expect(w.Client.Create(ctx, account)).To(Succeed())

			Expect(w.CreateAndRun(ctx, s.name, p.config())).To(hasSucceeded())
			w.waitUntilFilled(ctx, p, s)
			w.WaitUntilQuiet(ctx)
			_, written := w.GetRequestCounts(nil)
			wanted := len(p.renderManifests())
			if strategy == "apply" {
				wanted++ // one more write after another program has filled a field that the manifest must contain
			}
			Expect(written).To(Equal(wanted), "requests: %s", w.Counter.Snapshot())

			before := w.Counter.Snapshot()
			Expect(w.RunAgain(ctx, s.name)).To(hasSucceeded())
			w.WaitUntilQuiet(ctx)
			w.expectWrites(before, p, 0)

			By("changing each of these objects in the manifests")
			old := p
			p = p.withChange()
			before = w.Counter.Snapshot()
			Expect(w.upgrade(ctx, p)).To(hasSucceeded())
			w.WaitUntilQuiet(ctx)
			w.expectUpgradeWrites(ctx, before, old, p)
			w.waitUntilFilled(ctx, p, s)

			By("filling a field that no controller fills")
			role := &rbacv1.Role{}
			role.Namespace, role.Name = p.Namespace, "empty-on-purpose"
			body := client.RawPatch("application/merge-patch+json", []byte(`{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`))
			Expect(w.Client.Patch(ctx, role, body, client.FieldOwner("kubectl-edit"))).To(Succeed())
			if strategy != "apply" {
				Expect(w.RunAgain(ctx, s.name)).To(hasSucceeded()) // the other strategies correct changes only in jobs
			}
			Eventually(func(g Gomega) []rbacv1.PolicyRule {
				g.Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
				return role.Rules
			}).WithContext(ctx).WithTimeout(patience).Should(BeEmpty())
			w.Delete(ctx, s.name)
		}, SpecTimeout(3*time.Minute))
	}
})

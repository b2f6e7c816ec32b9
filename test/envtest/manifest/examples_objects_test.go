// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
)

var _ = Describe("Examples of objects", func() {
	It("a configuration in the older API version is accepted [H-28]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionAnnotation).start()
		w.runSuccessfully(ctx, "old-version")
		Expect(w.Read(ctx, "old-version").Data).To(HaveKeyWithValue("level", "info"))
		w.remove(ctx, "old-version")
		Expect(w.Read(ctx, "old-version")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("lists are expanded, and each item gets the policy of its list [D8]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "list")
		w.remove(ctx, "list")
		Expect(w.Read(ctx, "list-a")).NotTo(BeNil())
		Expect(w.Read(ctx, "list-b")).NotTo(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("the policies decide whether a missing object is created, and whether it is deleted with the item [D8]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "policies")
		for name, there := range map[string]bool{"managed": true, "fallback": true, "kept": true, "ignored": false, "immutable": true} {
			Expect(w.Read(ctx, name) != nil).To(Equal(there), name)
		}
		w.Update(ctx, "policies", w.replaceText("policies", "level: info", "level: debug"))
		for name, level := range map[string]string{"managed": "debug", "fallback": "debug", "kept": "debug", "immutable": "info"} {
			Expect(w.Read(ctx, name).Data).To(HaveKeyWithValue("level", level), name)
		}
		w.remove(ctx, "policies")
		for name, there := range map[string]bool{"managed": false, "fallback": false, "kept": true, "immutable": false} {
			Expect(w.Read(ctx, name) != nil).To(Equal(there), name)
		}
	}, SpecTimeout(5*time.Minute))

	It("the policies decide whether an object that existed before is changed, and it is never deleted [D8, H-18, F29]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		for _, name := range []string{"managed", "fallback", "kept", "ignored", "immutable"} {
			w.createUnownedConfigMap(ctx, name, map[string]string{"level": "theirs"})
		}
		di := w.runSuccessfully(ctx, "policies")
		for name, level := range map[string]string{"managed": "info", "fallback": "theirs", "kept": "info", "ignored": "theirs", "immutable": "theirs"} {
			Expect(w.Read(ctx, name).Data).To(HaveKeyWithValue("level", level), name)
		}
		Expect(managedNames(di)).To(ConsistOf("managed", "kept"))
		for _, want := range []string{"Adopted: ConfigMap " + w.Namespace + "/managed", "LeftAlone: ConfigMap " + w.Namespace + "/fallback", "LeftAlone: ConfigMap " + w.Namespace + "/immutable"} {
			Eventually(w.events(ctx, "policies")).WithTimeout(patience).Should(ContainElement(HavePrefix(want)))
		}
		w.remove(ctx, "policies")
		for name, there := range map[string]bool{"managed": true, "fallback": true, "kept": true, "ignored": true, "immutable": true} {
			Expect(w.Read(ctx, name) != nil).To(Equal(there), name)
		}
		Eventually(w.events(ctx, "policies")).WithTimeout(patience).Should(ContainElement(HavePrefix("Released: ")))
	}, SpecTimeout(5*time.Minute))

	// Before the item is deployed, the object contains {level: theirs, format: "", more: theirs}. The manifest contains
	// {level: info, format: json}.
	for strategy, want := range map[string]map[string]string{
		"apply":          {"level": "info", "format": "json", "more": "theirs"},
		"update":         {"level": "info", "format": "json"},
		"patch":          {"level": "info", "format": "json"},
		"merge":          {"level": "theirs", "format": "json", "more": "theirs"},
		"mergeoverwrite": {"level": "info", "format": "json", "more": "theirs"},
	} {
		It("objects are updated with the strategy "+strategy+" [D9]", func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID).start()
			name := "strategy-" + strategy
			w.createUnownedConfigMap(ctx, name, map[string]string{"level": "theirs", "format": "", "more": "theirs"})
			w.runSuccessfully(ctx, name)
			Expect(w.Read(ctx, name).Data).To(Equal(want))

			w.Update(ctx, name, w.replaceText(name, "format: json", ""))
			_, stays := w.Read(ctx, name).Data["format"]
			Expect(stays).To(Equal(strings.HasPrefix(strategy, "merge")), "a field that left the manifest")
			w.remove(ctx, name)
			Expect(w.Read(ctx, name)).NotTo(BeNil(), "an object that existed before the item is kept")
		}, SpecTimeout(5*time.Minute))
	}

	It("objects are annotated and patched before they are created, after they are deployed, and before they are deleted [D8]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "before-and-after")
		cm := w.Read(ctx, "before-and-after")
		Expect(cm.Annotations).To(HaveKeyWithValue("example.com/origin", "landscape"))
		Expect(cm.Annotations).NotTo(HaveKey("example.com/confirm-deletion"))
		Expect(cm.Data).To(HaveKeyWithValue("state", "installed"))
		Eventually(func() faultnet.Counts { // wait until the watch has received the patched object
			before := w.Counter.Snapshot()
			w.RunAgain(ctx, "before-and-after")
			return w.Counter.Snapshot().Since(before)
		}).WithTimeout(patience).Should(BeEmpty(), "the patch is not drift")

		w.addFinalizer(ctx, "before-and-after")
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("before-and-after"))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("before-and-after"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.Data(ctx, "before-and-after")).WithTimeout(patience).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		cm = w.Read(ctx, "before-and-after")
		Expect(cm.Annotations).To(HaveKeyWithValue("example.com/confirm-deletion", "true"))
		Expect(cm.Data).To(HaveKeyWithValue("state", "leaving"))
		w.removeFinalizer(ctx, "before-and-after")
		Expect(w.Landscaper.WaitForDeletion(ctx, w.Key("before-and-after"))).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("objects and what they depend on are reconciled on a schedule [L3]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "every-second")
		w.UpdateConfigMap(ctx, "every-second", func(cm *corev1.ConfigMap) { cm.Data["level"] = "by hand" })
		Eventually(w.Data(ctx, "every-second")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("level", "info")))
		w.runSuccessfully(ctx, "at-night")
	}, SpecTimeout(5*time.Minute))
})

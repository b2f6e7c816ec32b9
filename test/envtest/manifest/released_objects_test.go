// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
)

var _ = Describe("Objects that a deleted item has left behind", func() {
	for name, leave := range map[string]func(ctx context.Context, w *env){
		"by the policy keep": func(ctx context.Context, w *env) {
			w.CreateAndRun(ctx, "first", config(nil, entry{"manifest": w.configMap("left", map[string]string{"key": "a"}), "policy": "keep"}))
			w.Delete(ctx, "first")
		},
		"by the annotation delete-without-uninstall": func(ctx context.Context, w *env) {
			w.CreateAndRun(ctx, "first", config(nil, w.configMap("left", map[string]string{"key": "a"})))
			Expect(w.Landscaper.SetAnnotations(ctx, w.Key("first"), map[string]string{lsv1alpha1.DeleteWithoutUninstallAnnotation: "true"})).To(Succeed())
			w.Delete(ctx, "first")
		},
	} {
		It("takes over an object that a deleted item left behind "+name+", with an event [F92]", func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID).start()
			leave(ctx, w)
			w.CreateAndRun(ctx, "second", config(nil, w.configMap("left", map[string]string{"key": "b"})))
			di := &lsv1alpha1.DeployItem{}
			Expect(w.Client.Get(ctx, w.Key("second"), di)).To(Succeed())
			live := w.Read(ctx, "left")
			Expect(live.Data).To(HaveKeyWithValue("key", "b"))
			Expect(live.Labels).To(HaveKeyWithValue(ownership.LabelItem, string(di.UID)))
			Eventually(w.events(ctx, "second")).WithTimeout(patience).Should(ContainElement(HavePrefix("TakenOver: ")))

			w.Delete(ctx, "second")
			Expect(w.Read(ctx, "left").Labels).NotTo(HaveKey(ownership.LabelItem), "the default policy of adoption keeps the object")
		}, SpecTimeout(5*time.Minute))
	}

	It("refuses an object of an item that exists, and the error describes a way out [F92]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "first", config(nil, w.configMap("theirs", map[string]string{"key": "a"})))
		before := w.Read(ctx, "theirs")
		w.Create(ctx, "second", config(nil, w.configMap("theirs", map[string]string{"key": "b"})))
		Eventually(w.item(ctx, "second")).WithTimeout(patience).Should(HaveField("Status.LastError.Message",
			ContainSubstring("set its policy to keep in that item, and then remove it there")))
		Expect(w.Read(ctx, "theirs")).To(Equal(before))
	}, SpecTimeout(5*time.Minute))
})

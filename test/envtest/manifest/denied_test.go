// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
)

// denyDeletion installs a webhook that denies deletions with the given code and text. The returned function removes the
// webhook.
func (w *env) denyDeletion(code int, reason string) (allow func()) {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"admission webhook \"guard.example.com\" denied the request: not on Fridays"}`, code, reason)
	w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "delete" },
		func(req *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": []string{"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
			}, nil
		}))
	return func() { w.Counter.SetInjector(nil) }
}

// denyDeletionByPolicy installs an admission policy that denies deletions in the namespace. The returned function
// removes the policy.
func (w *env) denyDeletionByPolicy(ctx context.Context) (allow func()) {
	GinkgoHelper()
	name := "no-deletes-" + w.Namespace
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Delete},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "false", Message: "not on Fridays"}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec.PolicyName = name
	binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Deny}
	binding.Spec.MatchResources = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Namespace}},
	}
	Expect(w.Client.Create(ctx, policy)).To(Succeed())
	Expect(w.Client.Create(ctx, binding)).To(Succeed())
	allow = func() {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(w.Client.Delete(context.WithoutCancel(ctx), binding))).To(Succeed())
		Expect(client.IgnoreNotFound(w.Client.Delete(context.WithoutCancel(ctx), policy))).To(Succeed())
	}
	DeferCleanup(allow)
	probe := w.Read(ctx, "cm-0")
	Eventually(func() error { return w.Client.Delete(ctx, probe, client.DryRunAll) }).WithTimeout(patience).
		Should(MatchError(apierrors.IsInvalid, "refused by the policy"))
	return allow
}

// denials contains different ways to deny deletions. The keys are the names of these ways.
var denials = map[string]func(context.Context, *env) (allow func()){
	"a webhook without a code": func(_ context.Context, w *env) func() { return w.denyDeletion(http.StatusBadRequest, "") },
	"a webhook that forbids":   func(_ context.Context, w *env) func() { return w.denyDeletion(http.StatusForbidden, "Forbidden") },
	"a webhook that is broken": func(_ context.Context, w *env) func() {
		return w.denyDeletion(http.StatusInternalServerError, "InternalError")
	},
	"an admission policy":       func(ctx context.Context, w *env) func() { return w.denyDeletionByPolicy(ctx) },
	"a webhook with a conflict": func(_ context.Context, w *env) func() { return w.denyDeletion(http.StatusConflict, "Conflict") },
}

// waitForWaitingReason waits until the item shows the reason why it makes no progress.
func (w *env) waitForWaitingReason(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := &lsv1alpha1.DeployItem{}
	Eventually(func(g Gomega) {
		var err error
		di, err = w.Landscaper.Get(ctx, w.Key(name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(di.Status.LastError).NotTo(BeNil())
		g.Expect(di.Status.LastError.Message).To(And(ContainSubstring("cm-"), ContainSubstring("not on Fridays")))
	}).WithTimeout(patience).Should(Succeed())
	return di
}

var _ = Describe("Denied deletions", func() {
	for name, deny := range denials {
		It("keeps an item and its inventory until its objects can be deleted: "+name, func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID).start()
			w.CreateAndRun(ctx, "item", config(nil, w.configMaps(3, "a")...))
			allow := deny(ctx, w)
			Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
			Expect(w.Landscaper.TriggerWithJobID(ctx, w.Key("item"), jobID)).To(Succeed())
			di := w.waitForWaitingReason(ctx, "item")
			Expect(di.Finalizers).NotTo(BeEmpty())
			Expect(contract.IsFinal(di.Status.Phase)).To(BeFalse(), "phase %s: another configuration would not help", di.Status.Phase)
			Expect(w.inventory(ctx, "item")).To(HaveLen(3))

			By("starting another process, which waits too")
			w.Manager.Kill()
			w.start()
			Consistently(func(g Gomega) {
				g.Expect(w.Data(ctx, "cm-1")(g)).NotTo(BeNil())
				g.Expect(w.inventory(ctx, "item")).To(HaveLen(3))
			}).Should(Succeed())

			allow()
			Expect(job{}.waitUntilEnded(ctx, w)).To(Succeed())
			job{gone: []string{"cm-0", "cm-1", "cm-2"}}.check(ctx, w, di)
		}, SpecTimeout(8*time.Minute))

		It("keeps a pruned object in the inventory until it can be deleted: "+name, func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID).start()
			w.CreateAndRun(ctx, "item", config(nil, w.configMaps(3, "a")...))
			allow := deny(ctx, w)
			Expect(w.Landscaper.Update(ctx, w.Key("item"), config(nil, w.configMaps(2, "b")...))).To(Succeed())
			Expect(w.Landscaper.TriggerWithJobID(ctx, w.Key("item"), "first")).To(Succeed())
			di := w.waitForWaitingReason(ctx, "item")
			Expect(di.Status.JobIDFinished).NotTo(Equal("first"))
			Expect(w.Read(ctx, "cm-0").Data).To(HaveKeyWithValue("key", "b"), "all other objects are updated")

			By("changing the item during the wait")
			last := job{after: w.configMaps(1, "c"), gone: []string{"cm-1", "cm-2"}}
			Expect(w.Landscaper.Update(ctx, w.Key("item"), config(nil, last.after...))).To(Succeed())
			Expect(w.Landscaper.TriggerWithJobID(ctx, w.Key("item"), jobID)).To(Succeed())
			Eventually(w.Data(ctx, "cm-0")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("key", "c")))
			w.waitForWaitingReason(ctx, "item")
			Expect(w.inventory(ctx, "item")).To(HaveLen(3))

			allow()
			Expect(last.waitUntilEnded(ctx, w)).To(Succeed())
			last.check(ctx, w, di)
		}, SpecTimeout(8*time.Minute))
	}
})

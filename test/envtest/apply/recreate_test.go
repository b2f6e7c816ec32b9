// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/faultnet"
)

func withStrategy(d apply.Desired, strategy apply.Strategy) apply.Desired {
	d.Strategy = strategy
	return d
}

// newJob returns a Job. The template of a Job is immutable.
func (w *env) newJob(image string) apply.Desired {
	return w.manifest("batch/v1", "Job", "a", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": image}},
	}}}})
}

// expectWaiting applies the desired objects once. It requires that the report contains the given reason for waiting.
func (w *env) expectWaiting(ctx context.Context, reason string, desired ...apply.Desired) {
	GinkgoHelper()
	report, err := w.try(ctx, desired...)
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Reason()).To(ContainSubstring(reason))
}

const comesAgain = "and is created again when it is gone"

var _ = Describe("Strategy Recreate", func() {
	It("deletes an object whose manifest changed, creates it when it is gone, and otherwise sends no request [R15]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyRecreate
		w.apply(ctx)
		first, second := w.configMap("a", "key", "1", "old", "yes"), w.configMap("a", "key", "2")
		Expect(w.recordRequests(func() { w.apply(ctx, first) })).To(matchWrites(1))
		Expect(w.recordRequests(func() { w.apply(ctx, first) })).To(matchWrites(0))
		before := w.get(ctx, "a")

		going := w.recordRequests(func() { w.expectWaiting(ctx, comesAgain, second) })
		Expect(w.get(ctx, "a")).To(BeNil())
		Expect(going).To(matchWrites(3), "expected requests: a read, a dry run and a deletion: "+going.String())
		Expect(w.listNames()).To(ConsistOf("a"), "the object stays in the inventory until a read shows that it is gone")
		coming := w.recordRequests(func() {
			report, err := w.try(ctx, second)
			Expect(err).NotTo(HaveOccurred())
			Expect(report.IsDone()).To(BeTrue())
		})
		Expect(coming).To(matchWrites(2), "expected requests: a read and a creation: "+coming.String())
		Expect(w.get(ctx, "a").UID).NotTo(Equal(before.UID))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "2"}))
		Expect(w.recordRequests(func() { w.apply(ctx, second) })).To(matchWrites(0))
	})

	It("recreates an object that another client changed, and ignores fields of other managers [R15]", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := withStrategy(w.configMap("a", "key", "1", "more", "1"), apply.StrategyRecreate)
		w.apply(ctx, desired)
		first := w.get(ctx, "a").UID
		w.patchConfigMap(ctx, "a", `{"data":{"theirs":"yes"}}`)
		Expect(w.recordRequests(func() { w.apply(ctx, desired) })).To(matchWrites(0))
		for _, patch := range []string{`{"data":{"key":"by hand"}}`, `{"data":{"more":null}}`} {
			before := w.get(ctx, "a")
			w.patchConfigMap(ctx, "a", patch)
			w.apply(ctx, desired)
			Expect(w.get(ctx, "a").UID).NotTo(Equal(before.UID))
			Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "1", "more": "1"}))
		}
		Expect(w.get(ctx, "a").UID).NotTo(Equal(first))
	})

	It("changes immutable fields, and sends the patch before the deletion [R15]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyRecreate
		key := client.ObjectKey{Namespace: w.namespace, Name: "a"}
		first, second := w.newJob("one"), w.newJob("two")
		w.apply(ctx, first)
		second.AnnotateBeforeDelete = map[string]string{"example.org/may-go": "yes"}
		spent := w.recordRequests(func() { w.expectWaiting(ctx, comesAgain, second) })
		Expect(spent).To(HaveKeyWithValue(HaveField("Verb", "delete"), 1), spent.String())
		Expect(spent).To(HaveKeyWithValue(HaveField("Verb", "patch"), 2), "expected requests: a dry run and the annotation: "+spent.String())
		w.apply(ctx, second)
		after := &batchv1.Job{}
		Expect(direct.Get(ctx, key, after)).To(Succeed())
		Expect(after.Spec.Template.Spec.Containers[0].Image).To(Equal("two"))

		// The Job is also recreated if the inventory was lost.
		w.stored = apply.Inventory{}
		w.apply(ctx, w.newJob("three"))
		Expect(direct.Get(ctx, key, after)).To(Succeed())
		Expect(after.Spec.Template.Spec.Containers[0].Image).To(Equal("three"))
	})

	It("leaves an object that is being deleted until it is gone [Rx3]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyRecreate
		w.apply(ctx, w.configMap("a", "key", "1"))
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		w.expectWaiting(ctx, comesAgain, w.configMap("a", "key", "2"))
		before := w.get(ctx, "a")
		Expect(before.DeletionTimestamp).NotTo(BeNil())
		Expect(w.recordRequests(func() { w.expectWaiting(ctx, comesAgain, w.configMap("a", "key", "2")) })).To(matchWrites(0))
		watches := w.options.Watched
		w.options.Watched = nil
		spent := w.recordRequests(func() { w.expectWaiting(ctx, comesAgain, w.configMap("a", "key", "2")) })
		Expect(spent.OnlyReads().Sum()).To(Equal(spent.Sum()), spent.String())
		Expect(w.get(ctx, "a")).To(Equal(before))
		w.options.Watched = watches
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":null}}`)
		w.apply(ctx, w.configMap("a", "key", "2"))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "2"))
	})

	It("restores a removed owner label in place [Rx14]", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := withStrategy(w.configMap("a", "key", "1"), apply.StrategyRecreate)
		w.apply(ctx, desired)
		uid := w.get(ctx, "a").UID
		for _, patch := range []string{`{"metadata":{"labels":null}}`, `{"metadata":{"annotations":{"deployerkit.dev/item-name":"x"}}}`, `{"metadata":{"managedFields":[{}]}}`} {
			w.patchConfigMap(ctx, "a", patch)
			w.apply(ctx, desired)
			Expect(w.get(ctx, "a").UID).To(Equal(uid), patch)
			Expect(w.listOwned(ctx)).To(ConsistOf("a"), patch)
			Expect(w.recordRequests(func() { w.apply(ctx, desired) })).To(matchWrites(0), patch)
		}
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue(ownership.AnnotationName, "item"))
	})

	It("deletes no object whose new manifest is refused", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyRecreate
		w.apply(ctx, w.configMap("a", "key", "1"))
		before := w.get(ctx, "a")
		broken := w.configMap("a", "key", "2")
		broken.Object.SetLabels(map[string]string{"app": "no such value!"})
		_, err := w.try(ctx, broken)
		Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
		Expect(w.get(ctx, "a")).To(Equal(before))
	})

	It("deletes no object that another item owns by now, or that another client created in its place", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyRecreate
		w.apply(ctx, w.configMap("a", "key", "1"), w.configMap("b", "key", "1"))
		w.patchConfigMap(ctx, "a", `{"metadata":{"labels":{"deployerkit.dev/item":"another"},"annotations":{"deployerkit.dev/item-name":"another"}}}`)
		Expect(direct.Delete(ctx, w.get(ctx, "b"))).To(Succeed())
		w.createForeign(ctx, "b", "key", "theirs", "more", "theirs")
		before := []any{w.get(ctx, "a"), w.get(ctx, "b").UID}
		for range 2 {
			_, err := w.try(ctx, w.configMap("a", "key", "2"), w.configMap("b", "key", "1"))
			Expect(err).To(MatchError(ContainSubstring("items/another")))
		}
		Expect([]any{w.get(ctx, "a"), w.get(ctx, "b").UID}).To(Equal(before))
		Expect(w.get(ctx, "b").Data).To(Equal(map[string]string{"key": "1", "more": "theirs"}), "the object is adopted without being recreated")
	})

	It("does not recreate objects that another strategy applied, and reads objects without a watch", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMap("a", "key", "1"))
		before := w.get(ctx, "a")
		w.options.Strategy = apply.StrategyRecreate
		Expect(w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "1")) })).To(matchWrites(0))
		w.options.Watched = nil
		spent := w.recordRequests(func() { w.apply(ctx, w.configMap("a", "key", "1")) })
		Expect(spent.OnlyReads().Sum()).To(Equal(1))
		Expect(spent).To(matchWrites(1), spent.String())
		Expect(w.get(ctx, "a")).To(Equal(before))
	})

	It("shows a recreated object in the plan", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyRecreate
		w.apply(ctx, w.configMap("a", "key", "1"), w.configMap("b"), w.newJob("one"))
		w.patchConfigMap(ctx, "b", `{"metadata":{"labels":null}}`)
		plan, err := w.getPlan(ctx, w.configMap("a", "key", "2"), w.configMap("b"), w.newJob("two"), w.configMap("c"))
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Changes).To(HaveExactElements(
			SatisfyAll(HaveField("Action", apply.ActionRecreate), HaveField("Ref.Kind", "Job"), HaveField("Fields", BeEmpty())),
			SatisfyAll(HaveField("Action", apply.ActionRecreate), HaveField("Ref.Name", "a"), HaveField("Fields", ConsistOf(apply.FieldChange{Path: ".data.key", Old: `"1"`, New: `"2"`}))),
			SatisfyAll(HaveField("Action", apply.ActionChange), HaveField("Ref.Name", "b")),
			SatisfyAll(HaveField("Action", apply.ActionCreate), HaveField("Ref.Name", "c")),
		))
	})

	for _, lost := range []bool{false, true} {
		for n := range 4 {
			It(fmt.Sprintf("recreates an object after the process was killed at write %d, %s the write took effect", n, effect[lost]), func(ctx SpecContext) {
				w := newEnv(ctx)
				w.options.Strategy, w.options.Concurrency = apply.StrategyRecreate, 1
				w.createForeign(ctx, "foreign", "key", "theirs")
				untouched := w.get(ctx, "foreign")
				w.apply(ctx, w.configMap("a", "key", "1"))
				w.untilKilled(n, lost, func(e *apply.Engine) (inv apply.Inventory, report apply.Report, err error) {
					inv = w.stored
					for range 2 {
						if inv, report, err = e.Apply(ctx, w.owner, []apply.Desired{w.configMap("a", "key", "2")}, inv); err != nil {
							return inv, report, err
						}
					}
					return inv, report, err
				})
				w.apply(ctx, w.configMap("a", "key", "2"))
				Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "2"))
				Expect(w.listReasons()).To(BeEmpty())
				w.delete(ctx)
				Expect(w.listOwned(ctx)).To(BeEmpty())
				Expect(w.get(ctx, "foreign")).To(Equal(untouched))
			})
		}
	}

	It("reports a denied deletion, and tries it again", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyRecreate
		w.apply(ctx, w.configMap("a", "key", "1"))
		w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "delete" },
			faultnet.ReturnStatus(http.StatusForbidden, metav1.StatusReasonForbidden)))
		_, err := w.try(ctx, w.configMap("a", "key", "2"))
		Expect(err).To(MatchError(ContainSubstring("/a: injected by the test")))
		Expect(apply.GetClass(err)).To(Equal(apply.ClassRetry))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "1"))
		w.wire.SetInjector(nil)
		w.apply(ctx, w.configMap("a", "key", "2"))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "2"))
	})
})

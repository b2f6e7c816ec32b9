// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/faultnet"
)

var _ = Describe("Update strategies", func() {
	// First, the item applies the keys "key" and "old", and another client sets the key "hand". Then the item applies a
	// manifest that changes "key", adds "added" and no longer contains "old".
	for strategy, want := range map[apply.Strategy]map[string]string{
		apply.StrategyApply:          {"key": "new", "hand": "theirs", "added": "yes"},
		apply.StrategyUpdate:         {"key": "new", "added": "yes"},
		apply.StrategyPatch:          {"key": "new", "added": "yes"},
		apply.StrategyMerge:          {"key": "value", "old": "yes", "hand": "theirs", "added": "yes"},
		apply.StrategyMergeOverwrite: {"key": "new", "old": "yes", "hand": "theirs", "added": "yes"},
	} {
		It("the strategy "+string(strategy)+" treats fields like the strategy of Landscaper [D9]", func(ctx SpecContext) {
			w := newEnv(ctx)
			w.options.Strategy = strategy
			w.apply(ctx, w.configMap("a", "key", "value", "old", "yes"))
			w.patchConfigMap(ctx, "a", `{"data":{"hand":"theirs"},"metadata":{"finalizers":["example.org/theirs"]}}`)
			w.apply(ctx, w.configMap("a", "key", "new", "added", "yes"))
			Expect(w.get(ctx, "a").Data).To(Equal(want))
			Expect(w.get(ctx, "a").Finalizers).To(ConsistOf("example.org/theirs"))

			version := w.get(ctx, "a").ResourceVersion
			w.apply(ctx, w.configMap("a", "key", "new", "added", "yes"))
			Expect(w.get(ctx, "a").ResourceVersion).To(Equal(version))
		})

		It("the strategy "+string(strategy)+" keeps immutable fields [D9]", func(ctx SpecContext) {
			w := newEnv(ctx)
			w.options.Strategy = strategy
			service := func(port int64) apply.Desired {
				return w.manifest("v1", "Service", "a", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": port}}}})
			}
			job := w.manifest("batch/v1", "Job", "a", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "i"}},
			}}}})
			w.apply(ctx, service(1), job)
			before := &corev1.Service{}
			Expect(direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "a"}, before)).To(Succeed())
			w.apply(ctx, service(2), job)
			after := &corev1.Service{}
			Expect(direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "a"}, after)).To(Succeed())
			Expect(after.Spec.ClusterIP).To(Equal(before.Spec.ClusterIP))
		})
	}

	It("the strategy patch retries after a conflict", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Strategy = apply.StrategyPatch
		w.apply(ctx, w.configMap("a", "key", "value"))
		w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "patch" },
			faultnet.OnlyFirst(1, faultnet.ReturnStatus(http.StatusConflict, metav1.StatusReasonConflict))))
		report, err := w.try(ctx, w.configMap("a", "key", "new"))
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Reason()).To(ContainSubstring("changed while it was written"))
		w.apply(ctx, w.configMap("a", "key", "new"))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "new"))
	})

	It("annotateBeforeCreate is a part of each apply", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.configMap("a")
		desired.AnnotateBeforeCreate = map[string]string{"example.org/a": "1"}
		w.apply(ctx, desired)
		Expect(w.get(ctx, "a").Annotations).To(HaveKeyWithValue("example.org/a", "1"))
		Expect(w.recordRequests(func() { w.apply(ctx, desired) })).To(matchWrites(0))
	})

	It("patchAfterDeployment is sent once after each apply that changes the object", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.configMap("a", "key", "value")
		desired.PatchAfterDeployment = map[string]any{"data": map[string]any{"key": "patched", "more": "patched"}}
		after := func() {
			inv, report, err := w.newEngine().AfterDeployment(ctx, w.owner, []apply.Desired{desired}, w.stored)
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Waiting).To(BeEmpty())
			w.store(inv)
		}
		w.apply(ctx, desired)
		Expect(w.recordRequests(after)).To(matchWrites(1))
		Expect(w.get(ctx, "a").Data).To(Equal(map[string]string{"key": "patched", "more": "patched"}))
		Expect(w.recordRequests(func() { w.apply(ctx, desired); after() })).To(matchWrites(0))
		w.patchConfigMap(ctx, "a", `{"metadata":{"labels":{"deployerkit.dev/item":null}}}`)
		Expect(w.recordRequests(func() { w.apply(ctx, desired); after() })).To(matchWrites(2))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "patched"))
		desired.PatchAfterDeployment = map[string]any{"metadata": map[string]any{"labels": map[string]any{"deployerkit.dev/item": "x"}}}
		_, err := w.try(ctx, desired)
		Expect(err).To(MatchError(ContainSubstring("patchAfterDeployment.metadata.labels.deployerkit.dev/item")))
	})
})

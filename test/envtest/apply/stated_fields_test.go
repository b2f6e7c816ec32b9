// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
)

var _ = Describe("Errors about values of a manifest", func() {
	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMergeOverwrite} {
		It("hides the values of a Secret with an unknown field; strategy "+string(strategy)+" [F104]", func(ctx SpecContext) {
			const canary = "CANARY-81aa"
			w := newEnv(ctx)
			w.options.Strategy = strategy
			w.apply(ctx, w.manifest("v1", "Secret", "s", nil))
			_, err := w.try(ctx, w.manifest("v1", "Secret", "s", map[string]any{"data": map[string]any{"k": "Q0FOQVJZLTgxYWE="}, "typ": canary}))
			Expect(err).To(MatchError(SatisfyAll(
				ContainSubstring("/s: .typ: field not declared in schema"), Not(ContainSubstring(canary)), Not(ContainSubstring("Q0FOQVJZLTgxYWE")))))
		})
	}

	It("deletes an object although patchBeforeDelete contains an unknown field [F104]", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.configMap("a", "key", "value")
		desired.PatchBeforeDelete = map[string]any{"daten": "x"}
		w.apply(ctx, desired)
		w.delete(ctx)
		Expect(w.get(ctx, "a")).To(BeNil())
	})

	for _, strategy := range []apply.Strategy{apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMergeOverwrite} {
		It("sends changed addresses and Job labels, and recreates the object if the options allow this; strategy "+string(strategy)+" [F104]", func(ctx SpecContext) {
			w := newEnv(ctx)
			w.options.Strategy = strategy
			service := func(addresses ...any) apply.Desired {
				spec := map[string]any{"ports": []any{map[string]any{"port": int64(1)}}}
				if len(addresses) > 0 {
					spec["clusterIP"], spec["clusterIPs"] = addresses[0], addresses
				}
				return w.manifest("v1", "Service", "a", map[string]any{"spec": spec})
			}
			labelled := func(label string) apply.Desired {
				job := w.newJob("i")
				Expect(unstructured.SetNestedField(job.Object.Object, label, "spec", "template", "metadata", "labels", "mine")).To(Succeed())
				return job
			}
			w.apply(ctx, service(), labelled("one"))
			_, err := w.try(ctx, service("None"), labelled("two"))
			Expect(err).To(MatchError(SatisfyAll(
				ContainSubstring("Service "+w.namespace+"/a: .spec.clusterIP"), ContainSubstring("Job.batch "+w.namespace+"/a: .spec.template"))))
			w.options.Recreate = true
			w.apply(ctx, service("None"), labelled("two"))
			Expect(w.live(ctx, service()).Object["spec"]).To(HaveKeyWithValue("clusterIP", "None"))
			label, _, _ := unstructured.NestedString(w.live(ctx, w.newJob("i")).Object, "spec", "template", "metadata", "labels", "mine")
			Expect(label).To(Equal("two"))
		})
	}

	It("does not recreate an object whose label value looks like the message about an immutable field [F104]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Recreate = true
		w.apply(ctx, w.configMap("a", "key", "1"))
		uid := w.get(ctx, "a").UID
		wrong := w.configMap("a", "key", "2")
		wrong.Object.SetLabels(map[string]string{"app": "this cannot change, it is immutable"})
		_, err := w.try(ctx, wrong)
		Expect(err).To(HaveOccurred())
		Expect(w.get(ctx, "a")).NotTo(BeNil())
		Expect(w.get(ctx, "a").UID).To(Equal(uid))
	})
})

var _ = Describe("Fields that the API server has set by default", func() {
	deployment := func(w *env, strategy map[string]any) apply.Desired {
		return w.manifest("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
			"strategy": strategy, "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
			},
		}})
	}
	rolling, recreate := map[string]any{"type": "RollingUpdate"}, map[string]any{"type": "Recreate"}

	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyRecreate, apply.StrategyMergeOverwrite} {
		It("the error names the ways to remove such a field under the strategy "+string(strategy)+" [F103]", func(ctx SpecContext) {
			w := newEnv(ctx)
			w.options.Strategy = strategy
			w.apply(ctx, deployment(w, rolling))
			_, err := w.try(ctx, deployment(w, recreate))
			Expect(err).To(MatchError(SatisfyAll(ContainSubstring(".spec.strategy.rollingUpdate"), ContainSubstring("use the strategy update"))))
		})
	}

	It("the error does not name these ways if the manifest contains the field [F103]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, deployment(w, rolling))
		_, err := w.try(ctx, deployment(w, map[string]any{"type": "Recreate", "rollingUpdate": map[string]any{"maxSurge": int64(1)}}))
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring("Forbidden"), Not(ContainSubstring("strategy update")))))
	})
})

// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

// live reads an object of the spec's namespace, or a cluster-scoped one.
func (w *env) live(ctx SpecContext, d apply.Desired) *unstructured.Unstructured {
	GinkgoHelper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(d.Object.GroupVersionKind())
	Expect(direct.Get(ctx, client.ObjectKey{Namespace: d.Object.GetNamespace(), Name: d.Object.GetName()}, out)).To(Succeed())
	return out
}

var _ = Describe("Values in a manifest", func() {
	with := func(d apply.Desired, strategy apply.Strategy) apply.Desired {
		d.Strategy = strategy
		return d
	}
	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite, apply.StrategyOnDelete, apply.StrategyRecreate} {
		It("rejects a field that the schema does not contain; strategy "+string(strategy)+" [F104]", func(ctx SpecContext) {
			w := newEnv(ctx)
			service := func(extra map[string]any) apply.Desired {
				spec := map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
				maps.Copy(spec, extra)
				return with(w.manifest("v1", "Service", "web", map[string]any{"spec": spec}), strategy)
			}
			_, err := w.try(ctx, service(map[string]any{"portz": "x"}))
			Expect(err).To(MatchError(ContainSubstring(".spec.portz: field not declared in schema")))
			Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
			w.apply(ctx, service(nil))
			if strategy != apply.StrategyOnDelete && strategy != apply.StrategyRecreate {
				_, err = w.try(ctx, service(map[string]any{"portz": "x"}))
				Expect(err).To(MatchError(ContainSubstring(".spec.portz: field not declared in schema")))
			}
		})
	}

	It("rejects a patch after the deployment with a field that the schema does not contain [F104]", func(ctx SpecContext) {
		w := newEnv(ctx)
		cm := w.configMap("a")
		cm.PatchAfterDeployment = map[string]any{"daten": map[string]any{}}
		w.apply(ctx, cm)
		_, _, err := w.newEngine().AfterDeployment(ctx, w.owner, []apply.Desired{cm}, w.stored)
		Expect(err).To(MatchError(ContainSubstring(".daten: field not declared in schema")))
	})

	for _, strategy := range []apply.Strategy{apply.StrategyUpdate, apply.StrategyPatch} {
		It("sends a changed value of an immutable field, so that the API server reports it; strategy "+string(strategy)+" [F104]", func(ctx SpecContext) {
			w := newEnv(ctx)
			service := func(ip string) apply.Desired {
				spec := map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
				if ip != "-" {
					spec["clusterIP"] = ip
				}
				return with(w.manifest("v1", "Service", "web", map[string]any{"spec": spec}), strategy)
			}
			w.apply(ctx, service("-"))
			ip := w.live(ctx, service("-")).Object["spec"].(map[string]any)["clusterIP"]
			for _, kept := range []string{"-", "", ip.(string)} {
				w.apply(ctx, service(kept))
				Expect(w.live(ctx, service("-")).Object["spec"]).To(HaveKeyWithValue("clusterIP", ip), "with clusterIP %q", kept)
			}
			_, err := w.try(ctx, service("None"))
			Expect(err).To(MatchError(ContainSubstring("clusterIP")))
			w.options.Recreate = true
			w.apply(ctx, service("None"))
			Expect(w.live(ctx, service("-")).Object["spec"]).To(HaveKeyWithValue("clusterIP", "None"))
		})
	}

	for title, one := range map[string]struct {
		apiVersion, kind string
		before, after    map[string]any
	}{
		"the value of a PriorityClass": {"scheduling.k8s.io/v1", "PriorityClass", map[string]any{"value": int64(1)}, map[string]any{"value": int64(2)}},
		"the provisioner of a StorageClass": {
			"storage.k8s.io/v1", "StorageClass", map[string]any{"provisioner": "example.org/a"}, map[string]any{"provisioner": "example.org/b"},
		},
		"the handler of a RuntimeClass": {"node.k8s.io/v1", "RuntimeClass", map[string]any{"handler": "a"}, map[string]any{"handler": "b"}},
		"the role of a ClusterRoleBinding": {
			"rbac.authorization.k8s.io/v1", "ClusterRoleBinding",
			map[string]any{"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}},
			map[string]any{"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}},
		},
	} {
		It("recreates an object if "+title+" changes and the options allow this [F104]", func(ctx SpecContext) {
			w := newEnv(ctx)
			object := func(body map[string]any) apply.Desired {
				d := w.manifest(one.apiVersion, one.kind, w.namespace, body)
				d.Object.SetNamespace("")
				return d
			}
			w.apply(ctx, object(one.before))
			uid := w.live(ctx, object(one.before)).GetUID()
			_, err := w.try(ctx, object(one.after))
			Expect(err).To(HaveOccurred(), "without the option")
			w.options.Recreate = true
			w.apply(ctx, object(one.after))
			Expect(w.live(ctx, object(one.after)).GetUID()).NotTo(Equal(uid))
			w.delete(ctx)
		})
	}

	It("reports the key of an element that occurs twice in a list [F104]", func(ctx SpecContext) {
		w := newEnv(ctx)
		_, err := w.try(ctx, w.manifest("v1", "Pod", "a", map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "image": "i", "env": []any{map[string]any{"name": "TWICE", "value": "1"}, map[string]any{"name": "TWICE", "value": "2"}}},
		}}}))
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring("duplicate"), ContainSubstring("TWICE"))))
	})
})

var _ = Describe("Manifest without its former replicas", func() {
	It("keeps the replicas that another manager has applied too [F104]", func(ctx SpecContext) {
		w := newEnv(ctx)
		deployment := func(replicas any) apply.Desired {
			spec := map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
				},
			}
			if replicas != nil {
				spec["replicas"] = replicas
			}
			return w.manifest("apps/v1", "Deployment", "web", map[string]any{"spec": spec})
		}
		w.apply(ctx, deployment(int64(3)))
		handover := w.manifest("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{"replicas": int64(3)}}).Object
		Expect(direct.Apply(ctx, client.ApplyConfigurationFromUnstructured(handover), client.FieldOwner("handover"))).To(Succeed())
		w.apply(ctx, deployment(nil))
		Expect(w.live(ctx, deployment(nil)).Object["spec"]).To(HaveKeyWithValue("replicas", int64(3)))
		autoscaled := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))
		Expect(direct.Patch(ctx, w.live(ctx, deployment(nil)), autoscaled, client.FieldOwner("autoscaler"))).To(Succeed())
		w.options.Force = true
		w.apply(ctx, deployment(nil))
		Expect(w.live(ctx, deployment(nil)).Object["spec"]).To(HaveKeyWithValue("replicas", int64(5)))
	})
})

var _ = Describe("Deployments that change from the default strategy to Recreate", func() {
	deployment := func(w *env, strategy map[string]any) apply.Desired {
		spec := map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
			},
		}
		if strategy != nil {
			spec["strategy"] = strategy
		}
		return w.manifest("apps/v1", "Deployment", "web", map[string]any{"spec": spec})
	}
	recreate := map[string]any{"type": "Recreate"}

	It("refuses the change with the strategy apply, and both solutions that the error names work [F103]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, deployment(w, nil))
		_, err := w.try(ctx, deployment(w, recreate))
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring(".spec.strategy.rollingUpdate"), ContainSubstring("strategy update"), ContainSubstring("two steps"))))

		By("changing the strategy in two steps")
		w.apply(ctx, deployment(w, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}}))
		w.apply(ctx, deployment(w, recreate))
		Expect(w.live(ctx, deployment(w, nil)).Object["spec"]).To(HaveKeyWithValue("strategy", recreate))

		By("changing the strategy with the update strategy update")
		other := newEnv(ctx)
		other.apply(ctx, deployment(other, nil))
		changed := deployment(other, recreate)
		changed.Strategy = apply.StrategyUpdate
		other.apply(ctx, changed)
		Expect(other.live(ctx, changed).Object["spec"]).To(HaveKeyWithValue("strategy", recreate))
	})
})

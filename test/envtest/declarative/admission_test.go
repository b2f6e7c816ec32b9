// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("what admission adds to a child", func() {
	It("is not compared and not taken away [R39, R40, R41]", func(ctx SpecContext) {
		w := newEnv(ctx, podKind)
		w.inject(ctx)
		pod := object{
			"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "web"},
			"spec": object{"containers": []any{object{"name": "web", "image": "web:1"}}, "terminationGracePeriodSeconds": 0},
		}
		l := run(ctx, w, pod)
		got := child(ctx, l, "web", &corev1.Pod{})
		Expect(got.Spec.Containers).To(HaveLen(3))
		Expect(got.Spec.InitContainers).To(HaveLen(1))
		l.quiet(ctx)
		Expect(child(ctx, l, "web", &corev1.Pod{}).UID).To(Equal(got.UID))

		By("an update of our container")
		pod["spec"].(object)["containers"] = []any{object{"name": "web", "image": "web:2"}}
		l.wants(ctx, pod)
		now := child(ctx, l, "web", &corev1.Pod{})
		Expect(now.UID).To(Equal(got.UID))
		images := map[string]string{}
		for _, container := range append(now.Spec.Containers, now.Spec.InitContainers...) {
			images[container.Name] = container.Image
		}
		Expect(images).To(Equal(map[string]string{"web": "web:2", "sidecar": "sidecar:1", "logs": "logs:1", "init": "init:1"}))
		l.quiet(ctx)
	}, SpecTimeout(5*time.Minute))
})

// inject installs a mutating policy for the namespace. The policy adds two containers and an init container to each Pod
// that is created there.
func (w *env) inject(ctx context.Context) {
	GinkgoHelper()
	name := "inject-" + w.Namespace
	policy := object{"metadata": object{"name": name}, "spec": object{
		"failurePolicy": "Fail", "reinvocationPolicy": "Never",
		"matchConstraints": object{
			"namespaceSelector": object{"matchLabels": object{"kubernetes.io/metadata.name": w.Namespace}},
			"resourceRules": []any{object{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"},
			}},
		},
		"mutations": []any{object{"patchType": "ApplyConfiguration", "applyConfiguration": object{"expression": `Object{spec: Object.spec{
			containers: [Object.spec.containers{name: "sidecar", image: "sidecar:1"}, Object.spec.containers{name: "logs", image: "logs:1"}],
			initContainers: [Object.spec.initContainers{name: "init", image: "init:1"}]}}`}}},
	}}
	binding := object{"metadata": object{"name": name}, "spec": object{"policyName": name}}
	for kind, body := range map[string]object{"MutatingAdmissionPolicy": policy, "MutatingAdmissionPolicyBinding": binding} {
		obj := &unstructured.Unstructured{Object: body}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		Expect(w.Client.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(w.Client.Delete(ctx, obj)).To(Succeed()) })
	}
	Eventually(func(g Gomega) {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: "probe-"}}
		probe.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
		g.Expect(w.Client.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(probe.Spec.InitContainers).To(HaveLen(1))
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

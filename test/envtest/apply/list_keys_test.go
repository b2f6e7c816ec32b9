// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

var _ = Describe("Ports whose number another client has changed", func() {
	service := func(w *env, ports ...any) apply.Desired {
		return w.manifest("v1", "Service", "web", map[string]any{"spec": map[string]any{"type": "NodePort", "ports": ports}})
	}
	named := func(name string, port int64) map[string]any { return map[string]any{"name": name, "port": port} }
	edit := func(ctx context.Context, w *env, change func(*corev1.Service)) *corev1.Service {
		GinkgoHelper()
		live := &corev1.Service{}
		Expect(direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "web"}, live)).To(Succeed())
		before := live.DeepCopy()
		if change != nil {
			change(live)
			Expect(direct.Update(ctx, live, client.FieldOwner("kubectl-edit"))).To(Succeed())
		}
		return before
	}
	numbers := func(ports []corev1.ServicePort) (out []int32) {
		for _, port := range ports {
			out = append(out, port.Port)
		}
		return out
	}

	It("corrects the number of a port, and keeps other fields of this port and the ports of other managers", func(ctx SpecContext) {
		w := newEnv(ctx)
		want := service(w, named("https", 443), named("http", 80))
		w.apply(ctx, want)
		before := edit(ctx, w, func(s *corev1.Service) {
			s.Spec.Ports[0].Port = 8443
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "metrics", Port: 9090})
		})
		plan, err := w.getPlan(ctx, want)
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Changes).To(HaveLen(1))
		spent := w.recordRequests(func() { w.apply(ctx, want) })
		Expect(spent.Sum()).To(Equal(5), "a rejected apply, a read, an update, a change of managedFields and an apply: %s", spent)
		after := edit(ctx, w, nil)
		Expect(numbers(after.Spec.Ports)).To(ConsistOf(int32(443), int32(80), int32(9090)))
		Expect(after.Spec.Ports[0]).To(Equal(before.Spec.Ports[0]), "the number of the port and its node port")
		Expect(w.recordRequests(func() { w.apply(ctx, want) }).Sum()).To(BeZero())

		By("removing the port from the manifest")
		w.apply(ctx, service(w, named("http", 80)))
		Expect(numbers(edit(ctx, w, nil).Spec.Ports)).To(ConsistOf(int32(80), int32(9090)))
	})

	It("corrects the number of a port without a name", func(ctx SpecContext) {
		w := newEnv(ctx)
		want := service(w, map[string]any{"port": int64(443)})
		w.apply(ctx, want)
		edit(ctx, w, func(s *corev1.Service) { s.Spec.Ports[0].Port = 8443 })
		w.apply(ctx, want)
		Expect(numbers(edit(ctx, w, nil).Spec.Ports)).To(ConsistOf(int32(443)))
	})

	It("corrects the number of a container port", func(ctx SpecContext) {
		w := newEnv(ctx)
		labels := map[string]any{"app": "web"}
		want := w.manifest("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{
				map[string]any{"name": "web", "image": "web:1", "ports": []any{map[string]any{"name": "https", "containerPort": int64(443)}}},
			}}},
		}})
		w.apply(ctx, want)
		live := &appsv1.Deployment{}
		read := func() []corev1.ContainerPort {
			GinkgoHelper()
			Expect(direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "web"}, live)).To(Succeed())
			return live.Spec.Template.Spec.Containers[0].Ports
		}
		read()[0].ContainerPort = 8443
		Expect(direct.Update(ctx, live, client.FieldOwner("kubectl-edit"))).To(Succeed())
		w.apply(ctx, want)
		Expect(read()).To(ConsistOf(HaveField("ContainerPort", int32(443))))
	})

	It("corrects the number of a port together with a new manifest", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, service(w, named("https", 443)))
		edit(ctx, w, func(s *corev1.Service) { s.Spec.Ports[0].Port = 8443 })
		w.apply(ctx, service(w, named("https", 444)))
		Expect(numbers(edit(ctx, w, nil).Spec.Ports)).To(ConsistOf(int32(444)))
	})

	It("reports a manifest that contains a name twice", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, service(w, named("https", 443)))
		before := edit(ctx, w, nil)
		_, err := w.try(ctx, service(w, named("https", 443), named("https", 444)))
		Expect(err).To(MatchError(ContainSubstring("Duplicate value")))
		Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
		Expect(edit(ctx, w, nil)).To(Equal(before))
	})
})

// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// workload is a world.World with one item. A spec can change the children that the handler returns for the item.
type workload struct {
	*env

	handler *recordingHandler
	answer  atomic.Value // the children that the handler returns, with the type []any
	before  faultnet.Counts
}

// runItem deploys an item with the given children, and waits until the deployer sends no more requests.
func runItem(ctx context.Context, w *env, children ...any) *workload {
	GinkgoHelper()
	l := &workload{env: w}
	l.answer.Store(children)
	l.handler = newRecordingHandler(newLiveHandler(&l.answer))
	w.start(l.handler)
	w.CreateAndRun(ctx, "item", config(nil))
	l.waitUntilQuiet(ctx)
	return l
}

// setChildren changes the children that the handler returns. It then waits until the deployer sends no more requests.
func (l *workload) setChildren(ctx context.Context, children ...any) {
	GinkgoHelper()
	l.answer.Store(children)
	Expect(l.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
	l.waitUntilQuiet(ctx)
}

// waitUntilQuiet waits until the deployer sends no more requests, and stores the request counts. The method
// `expectNoRequests` compares later counts with the stored counts.
func (l *workload) waitUntilQuiet(ctx context.Context) {
	GinkgoHelper()
	l.WaitUntilQuiet(ctx)
	l.before = l.Counter.Snapshot()
}

// expectNoRequests starts another job, and requires that the deployer has sent no request to the target since the last
// call of the method `waitUntilQuiet`.
func (l *workload) expectNoRequests(ctx context.Context) {
	GinkgoHelper()
	l.RunAgain(ctx, "item")
	l.WaitUntilQuiet(ctx)
	reads, writes := l.GetRequestCounts(l.before)
	Expect(reads+writes).To(BeZero(), "requests: %s", l.Counter.Snapshot().Since(l.before))
}

// getChild reads a child into obj.
func getChild[T client.Object](ctx context.Context, l *workload, name string, obj T) T {
	GinkgoHelper()
	Expect(l.Client.Get(ctx, l.Key(name), obj)).To(Succeed())
	return obj
}

func (l *workload) deployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	return getChild(ctx, l, "web", &appsv1.Deployment{})
}

func (l *workload) container(ctx context.Context) corev1.Container {
	GinkgoHelper()
	return l.deployment(ctx).Spec.Template.Spec.Containers[0]
}

// apply sends a server-side apply with the field manager of another controller.
func (l *workload) apply(ctx context.Context, body object) {
	GinkgoHelper()
	obj := &unstructured.Unstructured{Object: body}
	obj.SetNamespace(l.Namespace)
	Expect(l.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("other-controller"))).To(Succeed())
}

// deployment returns a Deployment with one container. Additional fields of the container are in container, those of the
// Pod in pod.
func deployment(container object, pod object) object {
	spec := object{"containers": []any{mergeObjects(object{"name": "web", "image": "web:1"}, container)}}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web"},
		"spec": object{
			"selector": object{"matchLabels": object{"app": "web"}},
			"template": object{"metadata": object{"labels": object{"app": "web"}}, "spec": mergeObjects(spec, pod)},
		},
	}
}

func mergeObjects(a, b object) object {
	out := object{}
	for _, one := range []object{a, b} {
		maps.Copy(out, one)
	}
	return out
}

// newForeignFields returns fields of the Deployment that another controller sets.
func newForeignFields(container, pod object) object {
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web"},
		"spec": object{"template": object{"spec": mergeObjects(object{"containers": []any{mergeObjects(object{"name": "web"}, container)}}, pod)}},
	}
}

func newPort(number int, protocol, name string) object {
	return object{"containerPort": number, "protocol": protocol, "name": name}
}

func newMount(path, name string) object { return object{"mountPath": path, "name": name} }

func newVolume(name string) object { return object{"name": name, "emptyDir": object{}} }

func newEnvVar(name, value string) object { return object{"name": name, "value": value} }

func listEnvNames(c corev1.Container) []string {
	out := []string{}
	for _, one := range c.Env {
		out = append(out, one.Name)
	}
	return out
}

var _ = Describe("Lists in children", func() {
	It("matches elements of lists by the keys of the schema [Rh1, Rh5]", func(ctx SpecContext) {
		pod := object{"volumes": []any{newVolume("x"), newVolume("y")}, "hostAliases": []any{object{"ip": "10.0.0.1", "hostnames": []any{"a"}}}}
		container := object{"ports": []any{newPort(53, "UDP", "dns"), newPort(53, "TCP", "dns-tcp")}, "volumeMounts": []any{newMount("/x", "x")}}
		l := runItem(ctx, newEnv(ctx, deploymentKind), deployment(container, pod))
		l.apply(ctx, newForeignFields(object{"ports": []any{newPort(80, "TCP", "http")}, "volumeMounts": []any{newMount("/theirs", "y")}},
			object{"hostAliases": []any{object{"ip": "10.0.0.9", "hostnames": []any{"theirs"}}}}))
		l.expectNoRequests(ctx)

		By("changing one element of each list")
		container = object{"ports": []any{newPort(53, "UDP", "dns"), newPort(53, "TCP", "renamed")}, "volumeMounts": []any{newMount("/x", "y")}}
		pod["hostAliases"] = []any{object{"ip": "10.0.0.1", "hostnames": []any{"b"}}}
		l.setChildren(ctx, deployment(container, pod))
		got := l.container(ctx)
		Expect(got.Ports).To(ConsistOf(
			corev1.ContainerPort{Name: "dns", ContainerPort: 53, Protocol: "UDP"},
			corev1.ContainerPort{Name: "renamed", ContainerPort: 53, Protocol: "TCP"},
			corev1.ContainerPort{Name: "http", ContainerPort: 80, Protocol: "TCP"},
		))
		Expect(got.VolumeMounts).To(ConsistOf(
			corev1.VolumeMount{MountPath: "/x", Name: "y"}, corev1.VolumeMount{MountPath: "/theirs", Name: "y"},
		))
		Expect(l.deployment(ctx).Spec.Template.Spec.HostAliases).To(ConsistOf(
			corev1.HostAlias{IP: "10.0.0.1", Hostnames: []string{"b"}}, corev1.HostAlias{IP: "10.0.0.9", Hostnames: []string{"theirs"}},
		))
		l.expectNoRequests(ctx)
	}, SpecTimeout(5*time.Minute))

	It("removes the last element of a list that the handler no longer returns, and restores one that another client removed [Rh2]", func(ctx SpecContext) {
		full := object{"env": []any{newEnvVar("A", "1"), newEnvVar("B", "2"), newEnvVar("C", "3")}, "args": []any{"one", "two", "three"}}
		l := runItem(ctx, newEnv(ctx, deploymentKind), deployment(full, nil))
		l.setChildren(ctx, deployment(object{"env": []any{newEnvVar("A", "1"), newEnvVar("B", "2")}, "args": []any{"one", "two"}}, nil))
		Expect(listEnvNames(l.container(ctx))).To(Equal([]string{"A", "B"}))
		Expect(l.container(ctx).Args).To(Equal([]string{"one", "two"}))

		By("removing an element as another client")
		web := l.deployment(ctx)
		web.Spec.Template.Spec.Containers[0].Env = web.Spec.Template.Spec.Containers[0].Env[:1]
		web.Spec.Template.Spec.Containers[0].Args = web.Spec.Template.Spec.Containers[0].Args[:1]
		Expect(l.Client.Update(ctx, web, client.FieldOwner("kubectl-edit"))).To(Succeed())
		Eventually(func() []string { return listEnvNames(l.container(ctx)) }).WithTimeout(patience).Should(Equal([]string{"A", "B"}))
		Eventually(func() []string { return l.container(ctx).Args }).WithTimeout(patience).Should(Equal([]string{"one", "two"}))
	}, SpecTimeout(5*time.Minute))

	It("empties a list that the handler returns empty [Rh3]", func(ctx SpecContext) {
		full := object{"env": []any{newEnvVar("A", "1"), newEnvVar("B", "2")}, "args": []any{"one"}, "command": []any{"run"}}
		l := runItem(ctx, newEnv(ctx, deploymentKind), deployment(full, nil))
		l.setChildren(ctx, deployment(object{"env": []any{}, "args": []any{}}, nil))
		got := l.container(ctx)
		Expect(got.Env).To(BeEmpty())
		Expect(got.Args).To(BeEmpty())
		Expect(got.Command).To(BeEmpty(), "left out is the same")
		l.expectNoRequests(ctx)
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Values in children", func() {
	It("sends no update for values that mean the same [R38, Rh4]", func(ctx SpecContext) {
		resources := func(cpu, memory any) object {
			return object{
				"resources": object{"limits": object{"cpu": cpu, "memory": memory}}, "env": []any{newEnvVar("A", "1"), newEnvVar("B", "2")},
			}
		}
		secret := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "secret"}, "stringData": object{"password": "x"}}
		web := deployment(resources("0.5", "1024Mi"), nil)
		web["spec"].(object)["minReadySeconds"] = 1.0
		web["metadata"].(object)["creationTimestamp"] = nil
		web["status"] = object{}
		service := &corev1.Service{}
		service.APIVersion, service.Kind, service.Name = "v1", "Service", "service"
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		l := runItem(ctx, newEnv(ctx, deploymentKind, secretKind, serviceKind), web, secret, service)
		l.expectNoRequests(ctx)
		Expect(getChild(ctx, l, "secret", &corev1.Secret{}).Data).To(Equal(map[string][]byte{"password": []byte("x")}))

		By("returning the same values in another form")
		version, generation := l.deployment(ctx).ResourceVersion, l.deployment(ctx).Generation
		web = deployment(resources("500m", "1Gi"), nil)
		web["spec"].(object)["minReadySeconds"] = 1
		secret = object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "secret"}, "data": object{"password": "eA=="}}
		l.setChildren(ctx, web, secret, service)
		Expect(l.deployment(ctx).Generation).To(Equal(generation))
		Expect(l.deployment(ctx).ResourceVersion).To(Equal(version))
		l.expectNoRequests(ctx)

		By("reordering the environment variables as another client")
		patch := `[{"op":"replace","path":"/spec/template/spec/containers/0/env","value":[{"name":"B","value":"2"},{"name":"A","value":"1"}]}]`
		Expect(l.Client.Patch(ctx, l.deployment(ctx), client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner("kubectl-edit"))).To(Succeed())
		l.WaitUntilQuiet(ctx)
		l.expectNoRequests(ctx)
		Expect(listEnvNames(l.container(ctx))).To(Equal([]string{"B", "A"}))
	}, SpecTimeout(5*time.Minute))

	It("leaves fields that the handler returns as null to other managers [Rh6]", func(ctx SpecContext) {
		web := deployment(object{"workingDir": nil}, object{"priorityClassName": nil})
		web["spec"].(object)["replicas"] = nil
		l := runItem(ctx, newEnv(ctx, deploymentKind), web)
		l.apply(ctx, mergeObjects(newForeignFields(object{"workingDir": "/theirs"}, nil), nil))
		l.scale(ctx, 3)
		l.expectNoRequests(ctx)
		Expect(l.container(ctx).WorkingDir).To(Equal("/theirs"))
		Expect(l.deployment(ctx).Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	}, SpecTimeout(5*time.Minute))

	It("leaves replicas that the handler does not return to the autoscaler [R17, R39, Rh5]", func(ctx SpecContext) {
		l := runItem(ctx, newEnv(ctx, deploymentKind), deployment(nil, nil))
		for _, replicas := range []int32{2, 5, 1} {
			l.scale(ctx, replicas)
			l.WaitUntilQuiet(ctx)
			l.expectNoRequests(ctx)
			Expect(l.deployment(ctx).Spec.Replicas).To(HaveValue(Equal(replicas)))
		}
		l.setChildren(ctx, deployment(object{"image": "web:2"}, nil))
		Expect(l.container(ctx).Image).To(Equal("web:2"))
		Expect(l.deployment(ctx).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)), "also after an update")
	}, SpecTimeout(5*time.Minute))
})

// scale sets the replicas of the Deployment, as a HorizontalPodAutoscaler does.
func (l *workload) scale(ctx context.Context, replicas int32) {
	GinkgoHelper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	err := l.Client.SubResource("scale").Update(ctx, l.deployment(ctx), client.WithSubResourceBody(scale), client.FieldOwner("horizontal-pod-autoscaler"))
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("Deployments with an annotation of the deployment controller", func() {
	const revision = "deployment.kubernetes.io/revision"
	for _, strategy := range []declarative.UpdateStrategy{declarative.StrategyApply, declarative.StrategyReplace, declarative.StrategyRecreate} {
		It("writes a Deployment once per change although the controller annotates it ("+string(strategy)+") [F24]", world.Slow, func(ctx SpecContext) {
			kind := deploymentKind
			kind.Update = strategy
			l := runItem(ctx, newEnv(ctx, kind), deployment(nil, nil))
			annotated := func() map[string]string { return l.deployment(ctx).Annotations }
			Eventually(annotated).WithContext(ctx).WithTimeout(patience).Should(HaveKeyWithValue(revision, "1"))
			writes := func() int { _, writes := l.GetRequestCounts(nil); return writes }
			Consistently(writes).WithTimeout(4*time.Second).Should(Equal(1), func() string { return l.Counter.Snapshot().String() })
			l.RunAgain(ctx, "item")
			Expect(writes()).To(Equal(1), "requests: %s", l.Counter.Snapshot())
			Expect(annotated()).To(HaveKeyWithValue(revision, "1"))

			By("changing the child in the handler")
			l.setChildren(ctx, deployment(object{"image": "web:2"}, nil))
			Eventually(annotated).WithContext(ctx).WithTimeout(patience).Should(HaveKey(revision))
			perChange := 1
			if strategy == declarative.StrategyRecreate {
				perChange = 3 // a dry run, a deletion and a creation
			}
			Consistently(writes).WithTimeout(4*time.Second).Should(Equal(1+perChange), func() string { return l.Counter.Snapshot().String() })
			Expect(l.Condition(ctx, "item", managed.ConditionContested)(NewWithT(GinkgoTB()))).To(BeNil())
		}, SpecTimeout(5*time.Minute))
	}
})

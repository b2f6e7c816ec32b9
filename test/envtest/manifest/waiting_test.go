// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"strconv"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
)

// strategies are all that an item may name.
var strategies = []string{"apply", "update", "patch", "merge", "mergeOverwrite"}

// versions counts the versions of each item of the namespace until the spec ends. It begins before anything happens.
func (w *world) versions() func(item string) int {
	GinkgoHelper()
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: w.client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(GinkgoTB().Context()))
	items, err := c.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(w.ns))
	Expect(err).NotTo(HaveOccurred())
	var mu sync.Mutex
	seen := map[string]int{}
	var running sync.WaitGroup
	running.Go(func() {
		for e := range items.ResultChan() {
			if di, ok := e.Object.(*lsv1alpha1.DeployItem); ok && e.Type != watch.Deleted {
				mu.Lock()
				seen[di.Name]++
				mu.Unlock()
			}
		}
	})
	DeferCleanup(func() { cancel(); items.Stop(); running.Wait() })
	return func(item string) int {
		mu.Lock()
		defer mu.Unlock()
		return seen[item]
	}
}

// writesTo counts the writes to a resource of the target.
func (w *world) writesTo(resource string) int {
	writes := 0
	for request, n := range w.counter.Snapshot().Writes() {
		if request.Resource == resource {
			writes += n
		}
	}
	return writes
}

// workload is the manifest of a Deployment with two Pods, which says nothing of what has a default, and some of it in
// another form than it is stored in.
func (w *world) workload(name string) map[string]any {
	labels := map[string]any{"app": name}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": w.ns, "name": name},
		"spec": map[string]any{"replicas": 2, "paused": false, "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels, "creationTimestamp": nil},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": "c", "image": "i", "ports": []any{map[string]any{"containerPort": 80}},
				"resources": map[string]any{"requests": map[string]any{"cpu": "1000m"}},
			}}},
		}},
	}
}

// tokenSecret is the manifest of a Secret that a controller fills in.
func (w *world) tokenSecret(name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeServiceAccountToken), "metadata": map[string]any{
			"namespace": w.ns, "name": name, "annotations": map[string]any{corev1.ServiceAccountNameKey: "default"},
		},
	}
}

// exportOf is an entry of the configuration's exports.
func (w *world) exportOf(key, kind, name, path string) map[string]any {
	return map[string]any{"key": key, "jsonPath": path, "fromResource": map[string]any{"apiVersion": "v1", "kind": kind, "namespace": w.ns, "name": name}}
}

// lag measures how long items take to succeed after something has happened.
func (w *world) lag(ctx context.Context, items []string, happened func(g Gomega, item string) bool) map[string]time.Duration {
	GinkgoHelper()
	began, took := map[string]time.Time{}, map[string]time.Duration{}
	Eventually(func(g Gomega) {
		for _, name := range items {
			if began[name].IsZero() && happened(g, name) {
				began[name] = time.Now()
			}
			di := w.item(ctx, name)(g)
			if _, done := took[name]; !done && contract.IsFinal(di.Status.Phase) {
				g.Expect(di.Status.Phase).To(Equal(phases.Succeeded), "%s: %+v", name, di.Status.LastError)
				took[name] = time.Since(began[name])
			}
		}
		g.Expect(took).To(HaveLen(len(items)))
	}).WithTimeout(patience).WithPolling(20 * time.Millisecond).Should(Succeed())
	return took
}

var _ = Describe("while an item waits", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		Expect(cp.StartControllerManager(ctx, append(controlplane.DefaultControllers(), "serviceaccount-token-controller")...)).To(Succeed())
		DeferCleanup(cp.StopControllerManager)
	})

	for _, revision := range []contract.Revision{contract.Annotation, contract.JobID} {
		It("a Deployment is written once under each strategy ("+string(revision)+") [F24, F61]", func(ctx SpecContext) {
			w := newWorld(ctx, revision).start()
			versions := w.versions()
			for _, strategy := range strategies {
				w.create(ctx, nameOf(strategy), config(map[string]any{"updateStrategy": strategy}, w.workload(nameOf(strategy))))
			}
			live := func(g Gomega, name string) *appsv1.Deployment {
				obj := &appsv1.Deployment{}
				g.Expect(w.client.Get(ctx, w.key(name), obj)).To(Succeed())
				return obj
			}
			for _, strategy := range strategies {
				Eventually(func(g Gomega) map[string]string { return live(g, nameOf(strategy)).Annotations }).WithTimeout(patience).
					Should(HaveKey("deployment.kubernetes.io/revision"))
				w.says(ctx, nameOf(strategy), "Available: 0/2")
			}
			Consistently(func() int { return w.writesTo("deployments") }).WithTimeout(15*time.Second).WithPolling(time.Second).
				Should(Equal(len(strategies)), func() string { return w.counter.Snapshot().String() })
			for _, strategy := range strategies {
				Expect(versions(nameOf(strategy))).To(BeNumerically("<=", 10), strategy)
				Expect(live(NewGomega(Fail), nameOf(strategy)).Annotations).To(HaveKey("deployment.kubernetes.io/revision"), strategy)
			}

			kubelet(ctx, w)
			var names []string
			for _, strategy := range strategies {
				names = append(names, nameOf(strategy))
			}
			took := w.lag(ctx, names, func(g Gomega, name string) bool { return live(g, name).Status.AvailableReplicas == 2 })
			Expect(took).To(HaveEach(BeNumerically("<", 2*time.Second)))
			Expect(w.writesTo("deployments")).To(Equal(len(strategies)))

			By("another job")
			before := w.writesTo("deployments")
			for _, name := range names {
				Expect(w.again(ctx, name).Status.Phase).To(Equal(phases.Succeeded))
			}
			Expect(w.writesTo("deployments")).To(Equal(before), "%s", w.counter.Snapshot())
		}, SpecTimeout(3*time.Minute))

		It("a Secret that a controller fills in is written once under each strategy ("+string(revision)+") [F24, F61]", func(ctx SpecContext) {
			w := newWorld(ctx, revision).start()
			versions := w.versions()
			Eventually(func() error {
				return w.client.Get(ctx, w.key("default"), &corev1.ServiceAccount{})
			}).WithTimeout(patience).Should(Succeed())
			var names []string
			for _, strategy := range strategies {
				name := nameOf(strategy)
				names = append(names, name)
				w.create(ctx, name, config(map[string]any{"updateStrategy": strategy, "exports": map[string]any{"exports": []any{
					w.exportOf("token", "Secret", name, ".data.token"), w.exportOf("later", "ConfigMap", "later", ".data.value"),
				}}}, w.tokenSecret(name)))
			}
			filled := map[string]string{}
			for _, name := range names {
				secret := &corev1.Secret{}
				Eventually(func(g Gomega) []byte {
					g.Expect(w.client.Get(ctx, w.key(name), secret)).To(Succeed())
					return secret.Data["token"]
				}).WithTimeout(patience).ShouldNot(BeEmpty())
				filled[name] = secret.ResourceVersion
				w.says(ctx, name, `export "later": ConfigMap `+w.ns+"/later does not exist")
			}
			Consistently(func() int { return w.writesTo("secrets") }).WithTimeout(15*time.Second).WithPolling(time.Second).
				Should(Equal(len(strategies)), func() string { return w.counter.Snapshot().String() })
			for _, name := range names {
				Expect(versions(name)).To(BeNumerically("<=", 10), name)
			}

			w.theirs(ctx, "later", map[string]string{"value": "x"})
			took := w.lag(ctx, names, func(Gomega, string) bool { return true })
			Expect(took).To(HaveEach(BeNumerically("<", time.Second)))
			for _, name := range names {
				secret := &corev1.Secret{}
				Expect(w.client.Get(ctx, w.key(name), secret)).To(Succeed())
				Expect(secret.ResourceVersion).To(Equal(filled[name]), name)
				Expect(w.exported(ctx, w.item(ctx, name)(NewGomega(Fail)))).To(HaveKeyWithValue("token", Not(BeEmpty())))
			}
		}, SpecTimeout(3*time.Minute))
	}

	It("events wake it about once per second, and not more often [F61]", func(ctx SpecContext) {
		w := newWorld(ctx, contract.JobID).start()
		w.create(ctx, "item", config(nil, map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": w.ns, "name": "noisy"},
			"spec": map[string]any{"type": "LoadBalancer", "ports": []any{map[string]any{"port": 80}}},
		}))
		w.says(ctx, "item", "the load balancer has no address yet")
		before, n := w.counter.Snapshot(), 0
		Consistently(func(g Gomega) int {
			n++
			body := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"n":"`+strconv.Itoa(n)+`"}}}`))
			service := &corev1.Service{}
			service.Namespace, service.Name = w.ns, "noisy"
			g.Expect(w.client.Patch(ctx, service, body, client.FieldOwner("noise"))).To(Succeed())
			reads, writes := w.spent(before)
			return reads + writes
		}).WithTimeout(8 * time.Second).WithPolling(50 * time.Millisecond).Should(BeNumerically("<=", 10))
		Expect(n).To(BeNumerically(">", 20))
	}, SpecTimeout(time.Minute))

	It("what others change of an object is left alone by the strategies that read first, and put right by the next job [F61]", func(ctx SpecContext) {
		w := newWorld(ctx, contract.JobID)
		reading := []string{"update", "patch", "mergeOverwrite"}
		for _, strategy := range reading {
			name := nameOf(strategy)
			exports := map[string]any{"exports": []any{w.exportOf("later", "ConfigMap", "later-"+name, ".data.value")}}
			w.create(ctx, name, config(map[string]any{"updateStrategy": strategy, "exports": exports}, w.configMap(name, map[string]string{"key": "ours"})))
		}
		w.start() // not before: an item without a job ID would have a run without one first
		for _, strategy := range reading {
			name := nameOf(strategy)
			w.says(ctx, name, "does not exist")
			w.edit(ctx, name, func(cm *corev1.ConfigMap) { cm.Data["key"], cm.Data["more"] = "theirs", "theirs" })
			w.theirs(ctx, "later-"+name, map[string]string{"value": "x"})
			Expect(w.finished(ctx, name).Status.Phase).To(Equal(phases.Succeeded))
			Expect(w.read(ctx, name).Data).To(Equal(map[string]string{"key": "theirs", "more": "theirs"}), strategy)
			w.again(ctx, name)
			Expect(w.read(ctx, name).Data).To(Equal(map[string]string{"key": "ours", "more": "theirs"}), strategy)
		}
	}, SpecTimeout(time.Minute))
})

// nameOf is the name of the item and of the object with a strategy.
func nameOf(strategy string) string {
	if strategy == "mergeOverwrite" {
		return "merge-overwrite"
	}
	return strategy
}

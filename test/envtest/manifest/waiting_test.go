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
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// strategies contains all update strategies.
var strategies = []string{"apply", "update", "patch", "merge", "mergeOverwrite"}

// startVersionCounter starts to count the versions of each item in the namespace. It counts until the spec ends. Call
// it before the first item is created.
func (w *env) startVersionCounter() func(item string) int {
	GinkgoHelper()
	c, err := client.NewWithWatch(cp.Config, client.Options{Scheme: w.Client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(GinkgoTB().Context()))
	items, err := c.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(w.Namespace))
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

// sumWritesTo returns the number of writes to a resource of the target.
func (w *env) sumWritesTo(resource string) int {
	writes := 0
	for request, n := range w.Counter.Snapshot().OnlyWrites() {
		if request.Resource == resource {
			writes += n
		}
	}
	return writes
}

// newDeploymentManifest returns the manifest of a Deployment with two Pods. The manifest sets no fields that have a
// default. The API server stores some of its values in another format.
func (w *env) newDeploymentManifest(name string) map[string]any {
	labels := map[string]any{"app": name}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": w.Namespace, "name": name},
		"spec": map[string]any{"replicas": 2, "paused": false, "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels, "creationTimestamp": nil},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": "c", "image": "i", "ports": []any{map[string]any{"containerPort": 80}},
				"resources": map[string]any{"requests": map[string]any{"cpu": "1000m"}},
			}}},
		}},
	}
}

// tokenSecret returns the manifest of a Secret to which a controller adds a token.
func (w *env) tokenSecret(name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeServiceAccountToken), "metadata": map[string]any{
			"namespace": w.Namespace, "name": name, "annotations": map[string]any{corev1.ServiceAccountNameKey: "default"},
		},
	}
}

// newExport returns an entry of the list of exports in the configuration.
func (w *env) newExport(key, kind, name, path string) map[string]any {
	return map[string]any{"key": key, "jsonPath": path, "fromResource": map[string]any{"apiVersion": "v1", "kind": kind, "namespace": w.Namespace, "name": name}}
}

// measureDelays measures a time for each item. The time begins when `happened` first returns true for the item, and
// ends when the item has succeeded.
func (w *env) measureDelays(ctx context.Context, items []string, happened func(g Gomega, item string) bool) map[string]time.Duration {
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

var _ = Describe("Waiting items", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		Expect(cp.StartControllerManager(ctx, append(controlplane.DefaultControllers(), "serviceaccount-token-controller")...)).To(Succeed())
		DeferCleanup(cp.StopControllerManager)
	})

	for _, revision := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		It("writes a Deployment once under each strategy while the item waits ("+string(revision)+") [F24, F61]", world.Slow, func(ctx SpecContext) {
			w := newEnv(ctx, revision).start()
			versions := w.startVersionCounter()
			for _, strategy := range strategies {
				w.Create(ctx, nameOf(strategy), config(map[string]any{"updateStrategy": strategy}, w.newDeploymentManifest(nameOf(strategy))))
			}
			live := func(g Gomega, name string) *appsv1.Deployment {
				obj := &appsv1.Deployment{}
				g.Expect(w.Client.Get(ctx, w.Key(name), obj)).To(Succeed())
				return obj
			}
			for _, strategy := range strategies {
				Eventually(func(g Gomega) map[string]string { return live(g, nameOf(strategy)).Annotations }).WithTimeout(patience).
					Should(HaveKey("deployment.kubernetes.io/revision"))
				w.waitForReason(ctx, nameOf(strategy), "Available: 0/2")
			}
			Consistently(func() int { return w.sumWritesTo("deployments") }).WithTimeout(15*time.Second).WithPolling(time.Second).
				Should(Equal(len(strategies)), func() string { return w.Counter.Snapshot().String() })
			for _, strategy := range strategies {
				Expect(versions(nameOf(strategy))).To(BeNumerically("<=", 10), strategy)
				Expect(live(NewGomega(Fail), nameOf(strategy)).Annotations).To(HaveKey("deployment.kubernetes.io/revision"), strategy)
			}

			runKubelet(ctx, w)
			var names []string
			for _, strategy := range strategies {
				names = append(names, nameOf(strategy))
			}
			took := w.measureDelays(ctx, names, func(g Gomega, name string) bool { return live(g, name).Status.AvailableReplicas == 2 })
			Expect(took).To(HaveEach(BeNumerically("<", testtime.ScaleTimeout(10*time.Second))))
			Expect(w.sumWritesTo("deployments")).To(Equal(len(strategies)))

			By("running another job")
			before := w.sumWritesTo("deployments")
			for _, name := range names {
				Expect(w.RunAgain(ctx, name).Status.Phase).To(Equal(phases.Succeeded))
			}
			Expect(w.sumWritesTo("deployments")).To(Equal(before), "requests: %s", w.Counter.Snapshot())
		}, SpecTimeout(10*time.Minute))

		It("writes a Secret, which a controller then fills, only once while the item waits, under each strategy ("+string(revision)+") [F24, F61]", world.Slow, func(ctx SpecContext) {
			w := newEnv(ctx, revision).start()
			versions := w.startVersionCounter()
			Eventually(func() error {
				return w.Client.Get(ctx, w.Key("default"), &corev1.ServiceAccount{})
			}).WithTimeout(patience).Should(Succeed())
			var names []string
			for _, strategy := range strategies {
				name := nameOf(strategy)
				names = append(names, name)
				w.Create(ctx, name, config(map[string]any{"updateStrategy": strategy, "exports": map[string]any{"exports": []any{
					w.newExport("token", "Secret", name, ".data.token"), w.newExport("later", "ConfigMap", "later", ".data.value"),
				}}}, w.tokenSecret(name)))
			}
			filled := map[string]string{}
			for _, name := range names {
				secret := &corev1.Secret{}
				Eventually(func(g Gomega) []byte {
					g.Expect(w.Client.Get(ctx, w.Key(name), secret)).To(Succeed())
					return secret.Data["token"]
				}).WithTimeout(patience).ShouldNot(BeEmpty())
				filled[name] = secret.ResourceVersion
				w.waitForReason(ctx, name, `export "later": ConfigMap `+w.Namespace+"/later does not exist")
			}
			Consistently(func() int { return w.sumWritesTo("secrets") }).WithTimeout(15*time.Second).WithPolling(time.Second).
				Should(Equal(len(strategies)), func() string { return w.Counter.Snapshot().String() })
			for _, name := range names {
				Expect(versions(name)).To(BeNumerically("<=", 10), name)
			}

			w.createUnownedConfigMap(ctx, "later", map[string]string{"value": "x"})
			took := w.measureDelays(ctx, names, func(Gomega, string) bool { return true })
			Expect(took).To(HaveEach(BeNumerically("<", testtime.ScaleTimeout(5*time.Second))))
			for _, name := range names {
				secret := &corev1.Secret{}
				Expect(w.Client.Get(ctx, w.Key(name), secret)).To(Succeed())
				Expect(secret.ResourceVersion).To(Equal(filled[name]), name)
				Expect(w.readExport(ctx, w.item(ctx, name)(NewGomega(Fail)))).To(HaveKeyWithValue("token", Not(BeEmpty())))
			}
		}, SpecTimeout(10*time.Minute))
	}

	It("reads a waiting object that changes all the time at most about once per second [F61]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.Create(ctx, "item", config(nil, map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": w.Namespace, "name": "noisy"},
			"spec": map[string]any{"type": "LoadBalancer", "ports": []any{map[string]any{"port": 80}}},
		}))
		w.waitForReason(ctx, "item", "the load balancer has no address yet")
		before, n := w.Counter.Snapshot(), 0
		Consistently(func(g Gomega) int {
			n++
			body := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"n":"`+strconv.Itoa(n)+`"}}}`))
			service := &corev1.Service{}
			service.Namespace, service.Name = w.Namespace, "noisy"
			g.Expect(w.Client.Patch(ctx, service, body, client.FieldOwner("noise"))).To(Succeed())
			reads, writes := w.GetRequestCounts(before)
			return reads + writes
		}).WithTimeout(8 * time.Second).WithPolling(50 * time.Millisecond).Should(BeNumerically("<=", 10))
		Expect(n).To(BeNumerically(">", 10))
	}, SpecTimeout(5*time.Minute))

	It("corrects drift in the next job, and not while the item waits, if the strategy reads objects first [F61]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		reading := []string{"update", "patch", "mergeOverwrite"}
		for _, strategy := range reading {
			name := nameOf(strategy)
			exports := map[string]any{"exports": []any{w.newExport("later", "ConfigMap", "later-"+name, ".data.value")}}
			w.Create(ctx, name, config(map[string]any{"updateStrategy": strategy, "exports": exports}, w.configMap(name, map[string]string{"key": "ours"})))
		}
		// The deployer starts only now. Otherwise, it would run an item that has no job ID before the item gets its
		// first job.
		w.start()
		for _, strategy := range reading {
			name := nameOf(strategy)
			w.waitForReason(ctx, name, "does not exist")
			w.UpdateConfigMap(ctx, name, func(cm *corev1.ConfigMap) { cm.Data["key"], cm.Data["more"] = "theirs", "theirs" })
			w.createUnownedConfigMap(ctx, "later-"+name, map[string]string{"value": "x"})
			Expect(w.Finished(ctx, name).Status.Phase).To(Equal(phases.Succeeded))
			Expect(w.Read(ctx, name).Data).To(Equal(map[string]string{"key": "theirs", "more": "theirs"}), strategy)
			w.RunAgain(ctx, name)
			Expect(w.Read(ctx, name).Data).To(Equal(map[string]string{"key": "ours", "more": "theirs"}), strategy)
		}
	}, SpecTimeout(5*time.Minute))
})

// nameOf returns the name of the item that uses the given strategy. The object of this item has the same name.
func nameOf(strategy string) string {
	if strategy == "mergeOverwrite" {
		return "merge-overwrite"
	}
	return strategy
}

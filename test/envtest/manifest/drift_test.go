// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// listEvents returns a function for Eventually that reads the texts of all events with the given reason.
func (w *env) listEvents(ctx context.Context, reason string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &eventsv1.EventList{}
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		notes := []string{}
		for i := range list.Items {
			if list.Items[i].Reason == reason {
				notes = append(notes, list.Items[i].Type+" "+list.Items[i].Regarding.Name+": "+list.Items[i].Note)
			}
		}
		return notes
	}
}

// updateAsManager sets the value "key" of a ConfigMap under a field manager.
func (w *env) updateAsManager(ctx context.Context, manager, name, value string) {
	GinkgoHelper()
	cm := w.Read(ctx, name)
	cm.Data["key"] = value
	Expect(w.Client.Update(ctx, cm, client.FieldOwner(manager))).To(Succeed())
}

// waitUntilCorrected waits until the deployer has restored the value of a ConfigMap.
func (w *env) waitUntilCorrected(ctx context.Context, name, value string) {
	GinkgoHelper()
	Eventually(w.Data(ctx, name)).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("key", value)), name)
}

var _ = Describe("Drift correction", func() {
	It("ignores drift while an annotation of the item disables the correction, and corrects it afterwards [L3]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(2, "a")...))
		Expect(w.Landscaper.SetAnnotations(ctx, w.Key("item"), map[string]string{continuousreconcile.ActiveAnnotation: "false"})).To(Succeed())
		Eventually(func(g Gomega) {
			di := &lsv1alpha1.DeployItem{}
			g.Expect(w.Manager.GetClient().Get(ctx, w.Key("item"), di)).To(Succeed())
			g.Expect(di.Annotations).To(HaveKeyWithValue(continuousreconcile.ActiveAnnotation, "false"), "the deployer has received the change")
		}).WithTimeout(patience).Should(Succeed())
		before := w.Counter.Snapshot()
		w.updateAsManager(ctx, "kubectl-edit", "cm-1", "by hand")
		Consistently(func() int { _, writes := w.GetRequestCounts(before); return writes }).WithTimeout(2 * time.Second).Should(BeZero())
		Expect(w.Landscaper.SetAnnotations(ctx, w.Key("item"), map[string]string{continuousreconcile.ActiveAnnotation: ""})).To(Succeed())
		w.waitUntilCorrected(ctx, "cm-1", "a")
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(Equal(1), "requests: %s", w.Counter.Snapshot().Since(before))
	}, SpecTimeout(5*time.Minute))

	It("reports drift in events that name the object, the field manager and the field", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(2, "a")...))
		w.updateAsManager(ctx, "kubectl-edit", "cm-0", "by hand")
		w.waitUntilCorrected(ctx, "cm-0", "a")
		w.updateAsManager(ctx, "some-controller", "cm-1", "by a machine")
		w.waitUntilCorrected(ctx, "cm-1", "a")
		Eventually(w.listEvents(ctx, "Drift")).WithTimeout(patience).Should(ConsistOf(
			"Normal item: configmaps "+w.Namespace+"/cm-0: changed by kubectl-edit (data.key)",
			"Normal item: configmaps "+w.Namespace+"/cm-1: changed by some-controller (data.key)",
		))
	}, SpecTimeout(5*time.Minute))

	It("restores objects that were deleted, and ownership labels that were removed", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(3, "a")...))
		Expect(w.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(w.Namespace), client.HasLabels{ownership.LabelItem})).To(Succeed())
		for _, name := range []string{"cm-0", "cm-1", "cm-2"} {
			w.waitUntilCorrected(ctx, name, "a")
		}
		Eventually(w.listEvents(ctx, "Drift")).WithTimeout(patience).Should(ContainElement(ContainSubstring(": gone")))
		// Edit the ConfigMaps one after the other, because a run that is in progress corrects more drift without
		// another event.
		for _, name := range []string{"cm-0", "cm-1", "cm-2"} {
			uid := w.Read(ctx, name).UID
			Expect(w.Client.Delete(ctx, w.Read(ctx, name))).To(Succeed())
			Eventually(w.Data(ctx, name)).WithTimeout(patience).Should(And(Not(BeNil()), HaveField("UID", Not(Equal(uid)))))
			Eventually(w.listEvents(ctx, "Drift")).WithTimeout(patience).Should(ContainElement(ContainSubstring(name+": gone")), "each object has its own event")
		}
		w.UpdateConfigMap(ctx, "cm-1", func(cm *corev1.ConfigMap) { cm.Labels = nil })
		Eventually(w.Data(ctx, "cm-1")).WithTimeout(patience).Should(HaveField("Labels", HaveKey(ownership.LabelItem)))
		before := w.Counter.Snapshot()
		Consistently(func() int { _, writes := w.GetRequestCounts(before); return writes }).Should(BeZero())
	}, SpecTimeout(5*time.Minute))

	It("slows down and reports a fight with another client, and still ends the next job", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Fights = observe.FightOptions{FirstDelay: 30 * time.Second}
		w.start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(2, "a")...))
		before := w.Counter.Snapshot()
		w.startFight(ctx, "cm-0")
		writes := func() int { _, writes := w.GetRequestCounts(before); return writes }
		Eventually(writes).WithTimeout(patience).Should(Equal(2))
		Consistently(writes).WithTimeout(4*time.Second).Should(Equal(2), "the third correction is delayed")

		By("editing another object, which is corrected at once and alone")
		w.UpdateConfigMap(ctx, "cm-1", func(cm *corev1.ConfigMap) { cm.Data["key"] = "theirs" })
		Eventually(w.Data(ctx, "cm-1")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("key", "a")))
		Expect(writes()).To(Equal(3))

		By("running a job during the fight")
		started := time.Now()
		w.RunAgain(ctx, "item")
		Expect(time.Since(started)).To(BeNumerically("<", 15*time.Second))
		Eventually(w.listEvents(ctx, "Drift")).WithTimeout(patience).Should(ContainElement(And(
			HavePrefix("Warning item: configmaps "+w.Namespace+"/cm-0"), ContainSubstring("a fight with fighter about data.key"))))

		By("waiting after the job")
		now := w.Counter.Snapshot()
		Consistently(func() int { _, writes := w.GetRequestCounts(now); return writes }).WithTimeout(3*time.Second).
			Should(BeNumerically("<=", 1), "there is no hot loop after the job either")
	}, SpecTimeout(5*time.Minute))

	It("ends 50 random fights within the announced delay, and writes each object at most once in 4 s [F23, F24]", world.Slow, func(ctx SpecContext) {
		const (
			objects = 50
			delay   = 4 * time.Second
			// margin is the time that a loaded machine may need for a correction that is due.
			margin = 8 * time.Second
		)
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.Fights = observe.FightOptions{FirstDelay: delay, MaxDelay: delay}
		w.start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(objects, "a")...))
		ours := w.recordWrites()
		ended := w.runRandomFights(ctx, objects, 8*time.Second)
		for name := range ended {
			w.waitUntilCorrected(ctx, name, "a")
		}
		for name, end := range ended {
			writes := ours(name)
			for i := 2; i < len(writes); i++ {
				Expect(writes[i]).NotTo(BeTemporally("<", writes[i-1].Add(delay)), "%s: correction %d", name, i+1)
			}
			Expect(writes[len(writes)-1]).To(BeTemporally("<", end.Add(delay+margin)), name)
		}
		Expect(w.listEvents(ctx, "Drift")(NewWithT(GinkgoTB()))).To(ContainElement(ContainSubstring("a fight with")))
	}, SpecTimeout(5*time.Minute))

	It("writes an object that an admission policy changes back once per strategy [F24]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.RewriteKeys(ctx)
		w.start()
		writes := func() int { return w.sumWritesTo("configmaps") }
		for _, strategy := range strategies {
			name := nameOf(strategy)
			di := w.CreateAndRun(ctx, name, config(map[string]any{"updateStrategy": strategy}, w.configMap(name, map[string]string{"key": "a"})))
			Expect(di.Status.Phase).To(Equal(phases.Succeeded), strategy)
		}
		Consistently(writes).WithTimeout(2*time.Second).Should(Equal(len(strategies)), func() string { return w.Counter.Snapshot().String() })

		By("writing as another client")
		for _, strategy := range strategies {
			w.UpdateConfigMap(ctx, nameOf(strategy), func(cm *corev1.ConfigMap) { cm.Data["seen"] = "theirs" }) // the policy also replaces the value of "key"
			Expect(w.RunAgain(ctx, nameOf(strategy)).Status.Phase).To(Equal(phases.Succeeded), strategy)
		}
		corrected := writes()
		Expect(corrected).To(BeNumerically("<=", 2*len(strategies)), "requests: %s", w.Counter.Snapshot())
		for _, strategy := range strategies {
			Expect(w.RunAgain(ctx, nameOf(strategy)).Status.Phase).To(Equal(phases.Succeeded), strategy)
			Expect(w.Read(ctx, nameOf(strategy)).Data["key"]).To(HavePrefix("rewritten"), strategy)
			Expect(w.Condition(ctx, nameOf(strategy), managed.ConditionContested)(NewWithT(GinkgoTB()))).To(BeNil(), strategy)
		}
		Consistently(writes).WithTimeout(2*time.Second).Should(Equal(corrected), func() string { return w.Counter.Snapshot().String() })
	}, SpecTimeout(5*time.Minute))

	It("corrects drift that occurs during a job within that job, or right after it", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMaps(4, "a")...))
		edited := sync.OnceFunc(func() { w.updateAsManager(ctx, "kubectl-edit", "cm-0", "by hand") })
		w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "patch" && r.Name == "cm-3" },
			func(*http.Request) (*http.Response, error) {
				defer GinkgoRecover()
				Eventually(w.Data(ctx, "cm-0")).WithTimeout(patience).ShouldNot(HaveField("Data", HaveKeyWithValue("key", "a")))
				edited() // at this point, cm-0 has been written, and the job is still running
				return nil, nil
			}))
		di := w.Update(ctx, "item", config(nil, w.configMaps(4, "b")...))
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		w.waitUntilCorrected(ctx, "cm-0", "b")

		By("starting a job that waits")
		missing := map[string]any{"custom": []any{map[string]any{
			"name": "go", "resourceSelector": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "go", "namespace": w.Namespace}},
			"requirements": []any{map[string]any{"jsonPath": "data.key", "operator": "exists"}},
		}}}
		Expect(w.Landscaper.Update(ctx, w.Key("item"), config(map[string]any{"readinessChecks": missing}, w.configMaps(4, "c")...))).To(Succeed())
		Expect(w.Landscaper.TriggerWithJobID(ctx, w.Key("item"), jobID)).To(Succeed())
		w.waitUntilCorrected(ctx, "cm-3", "c")
		w.updateAsManager(ctx, "kubectl-edit", "cm-1", "by hand")
		w.waitUntilCorrected(ctx, "cm-1", "c")
		waiting, err := w.Landscaper.Get(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		Expect(waiting.Status.JobIDFinished).NotTo(Equal(jobID))
		goOn := &corev1.ConfigMap{Data: map[string]string{"key": "go"}}
		goOn.Namespace, goOn.Name = w.Namespace, "go"
		Expect(w.Client.Create(ctx, goOn)).To(Succeed())
		Expect(job{after: []any{}}.waitUntilEnded(ctx, w)).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("corrects drift that no watch detects in a scheduled run, which reads all objects [L3]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		more := map[string]any{
			"continuousReconcile": map[string]any{"every": "5s"}, "readinessChecks": map[string]any{"disableDefault": true},
		}
		w.CreateAndRun(ctx, "item", config(more, w.deployment("app", "first", "second")))
		names := func(g Gomega) []string {
			app := &appsv1.Deployment{}
			g.Expect(w.Client.Get(ctx, w.Key("app"), app)).To(Succeed())
			out := []string{}
			for _, env := range app.Spec.Template.Spec.Containers[0].Env {
				out = append(out, env.Name)
			}
			return out
		}
		before := w.Counter.Snapshot()
		app := &appsv1.Deployment{}
		Expect(w.Client.Get(ctx, w.Key("app"), app)).To(Succeed())
		patch := `[{"op":"replace","path":"/spec/template/spec/containers/0/env","value":[` +
			`{"name":"second","value":"x"},{"name":"first","value":"x"}]}]`
		Expect(w.Client.Patch(ctx, app, client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner("kubectl-edit"))).To(Succeed())
		Expect(names(NewGomega(Fail))).To(Equal([]string{"second", "first"}))
		Consistently(func() int { _, writes := w.GetRequestCounts(before); return writes }).WithTimeout(time.Second).Should(BeZero(), "the order of a list is a blind spot")
		Eventually(names).WithTimeout(patience).Should(Equal([]string{"first", "second"}))
	}, SpecTimeout(5*time.Minute))
})

// startFight changes a ConfigMap again after each correction, until the spec ends.
func (w *env) startFight(ctx context.Context, name string) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		defer GinkgoRecover()
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			cm := &corev1.ConfigMap{}
			if err := w.Client.Get(ctx, w.Key(name), cm); err != nil || cm.Data["key"] == "theirs" {
				continue
			}
			cm.Data["key"] = "theirs"
			// If an update fails because of a conflict, the loop tries again.
			_ = w.Client.Update(ctx, cm, client.FieldOwner("fighter"))
		}
	})
	DeferCleanup(func() { cancel(); running.Wait() })
}

// runRandomFights starts one writer for each of n ConfigMaps. Each writer begins at a random moment within as much time
// as a fight lasts, and changes its ConfigMap at random times. runRandomFights returns when all writers have ended. The
// result contains the time of the last write by the name of the ConfigMap.
func (w *env) runRandomFights(ctx context.Context, n int, lasting time.Duration) map[string]time.Time {
	GinkgoHelper()
	ended := map[string]time.Time{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range n {
		name := fmt.Sprintf("cm-%d", i)
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(i)))
		begin := time.After(time.Duration(random.Int64N(int64(lasting))))
		running.Go(func() {
			defer GinkgoRecover()
			<-begin
			end := time.Now().Add(lasting)
			for round := 0; time.Now().Before(end); round++ {
				patch := fmt.Sprintf(`{"data":{"key":"theirs-%d"}}`, round)
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
				Expect(w.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("fighter"))).To(Succeed())
				mu.Lock()
				ended[name] = time.Now()
				mu.Unlock()
				<-time.After(time.Duration(100+random.IntN(900)) * time.Millisecond)
			}
		})
	}
	running.Wait()
	return ended
}

// recordWrites records the time of each write of a ConfigMap by the deployer. It returns a function that returns the
// times for a name.
func (w *env) recordWrites() func(name string) []time.Time {
	times := map[string][]time.Time{}
	var mu sync.Mutex
	w.Counter.SetInjector(func(req *http.Request) (*http.Response, error) {
		r, ok := faultnet.RequestOf(req)
		if ok && r.Resource == "configmaps" && slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb) {
			mu.Lock()
			defer mu.Unlock()
			times[r.Name] = append(times[r.Name], time.Now())
		}
		return nil, nil
	})
	return func(name string) []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(times[name])
	}
}

// deployment returns the manifest of a Deployment with environment variables in the given order.
func (w *env) deployment(name string, variables ...string) map[string]any {
	env := []any{}
	for _, variable := range variables {
		env = append(env, map[string]any{"name": variable, "value": "x"})
	}
	labels := map[string]any{"app": name}
	container := map[string]any{"name": "main", "image": "example.com/none:1", "env": env}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": w.Namespace, "name": name},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}}},
		},
	}
}

var _ = Describe("Ownership conflicts", func() {
	It("refuses an object that another item owns with an error that names this item, and leaves the object unchanged", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "first", config(nil, w.configMap("cm-0", map[string]string{"key": "first"})))
		before := w.Read(ctx, "cm-0")
		w.Create(ctx, "second", config(nil, w.configMap("cm-0", map[string]string{"key": "second"}), w.configMap("cm-1", map[string]string{"key": "second"})))
		Eventually(func(g Gomega) *lsv1alpha1.Error {
			di, err := w.Landscaper.Get(ctx, w.Key("second"))
			g.Expect(err).NotTo(HaveOccurred())
			return di.Status.LastError
		}).WithTimeout(patience).Should(HaveField("Message", And(ContainSubstring("cm-0"), ContainSubstring(w.Namespace+"/first"))))
		Expect(w.Read(ctx, "cm-0")).To(Equal(before))

		By("deleting the second item, which removes only its own object")
		Expect(w.Landscaper.Delete(ctx, w.Key("second"))).To(Succeed())
		Expect(w.Read(ctx, "cm-0")).To(Equal(before))
		Expect(w.Read(ctx, "cm-1")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("takes over the objects of an earlier item with the same name", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateAndRun(ctx, "item", config(nil, w.configMap("cm-0", map[string]string{"key": "a", "old": "a"}), w.configMap("cm-1", map[string]string{"key": "a"})))
		uid := w.Read(ctx, "cm-0").UID
		Expect(w.Landscaper.SetAnnotations(ctx, w.Key("item"), map[string]string{lsv1alpha1.DeleteWithoutUninstallAnnotation: "true"})).To(Succeed())
		Expect(w.Landscaper.Delete(ctx, w.Key("item"))).To(Succeed())

		di := w.CreateAndRun(ctx, "item", config(nil, w.configMap("cm-0", map[string]string{"key": "b"}), w.configMap("cm-1", map[string]string{"key": "a"})))
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		cm := w.Read(ctx, "cm-0")
		Expect(cm.UID).To(Equal(uid))
		Expect(cm.Data).To(Equal(map[string]string{"key": "b"}), "a value of the earlier configuration is removed")
		Expect(cm.Labels).To(HaveKeyWithValue(ownership.LabelItem, string(di.UID)))
		Eventually(w.listEvents(ctx, "TakenOver")).WithTimeout(patience).Should(ConsistOf(ContainSubstring("cm-0"), ContainSubstring("cm-1")))

		Expect(w.Landscaper.Delete(ctx, w.Key("item"))).To(Succeed())
		Expect(w.Read(ctx, "cm-0")).To(BeNil())
		Expect(w.Read(ctx, "cm-1")).To(BeNil())
	}, SpecTimeout(5*time.Minute))
})

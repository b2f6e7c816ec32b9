// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	// sampledTrials is the number of trials that the suite runs. DEPLOYERKIT_SYSTEMATIC=all selects all trials, and
	// DEPLOYERKIT_SYSTEMATIC=<number> another sample.
	sampledTrials = 8
	// trialWorkers is the number of trials at the same time.
	trialWorkers = 6
	// trialRuns is the maximum number of runs of one trial. The number of requests varies, so the first run may not reach
	// the point of the fault.
	trialRuns = 3
)

// story is a chart whose hooks leave nothing behind, and that fails if the value "broken" is true.
var story = charttest.Files{
	"values.yaml":      "step: none\nbroken: false\n",
	"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: main}\ndata: {step: \"{{ .Values.step }}\"}\n",
	"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"only-{{ .Values.step }}\"}\n",
	"templates/h.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook-{{ .Values.step }}\n  annotations: {helm.sh/hook: \"pre-install,pre-upgrade,post-rollback,pre-delete\", helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"}\n",
	"templates/s.yaml": "{{ if .Values.broken }}\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: broken, ports: [{port: 80}]}\n{{ end }}",
}

// hookCounter counts how often each hook object is created.
type hookCounter struct {
	mu      sync.Mutex
	created map[string]int
}

func (h *hookCounter) start(ctx context.Context, w *world) {
	GinkgoHelper()
	events, err := w.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(w.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if cm, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Added && strings.HasPrefix(cm.Name, "hook-") {
				h.mu.Lock()
				h.created[cm.Name]++
				h.mu.Unlock()
			}
		}
	}()
}

// tell runs the story with a deployer on a network, which a fault may end. If the network kills the deployer, another one
// continues. The expectations must hold in spite of the fault.
func tell(ctx context.Context, scenario faultnet.Scenario) faultnet.Report {
	w := newWorld(ctx, func(w *world) { w.idle = true })
	hooks := &hookCounter{created: map[string]int{}}
	hooks.start(ctx, w)
	pending := watchOverlaps(ctx, w)
	network := faultnet.Start(GinkgoTB(), scenario)
	stop := landscapertest.RunWithRestart(GinkgoTB(), network, func(n *faultnet.Network) *landscapertest.Manager { return w.startReplica(n) })
	defer stop()

	configuration := func(step string, broken bool) config {
		return w.helmMode(story, map[string]any{"step": step, "broken": broken}, settings(map[string]any{"atomic": true}))
	}
	check := func(step string) {
		GinkgoHelper()
		list := &corev1.ConfigMapList{}
		Expect(w.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		names := []string{}
		for i := range list.Items {
			if name := list.Items[i].Name; name != "kube-root-ca.crt" {
				names = append(names, name)
			}
		}
		history := w.history(ctx, "web")
		if step == "" {
			Expect(names).To(BeEmpty(), "objects after the deletion")
			Expect(history).To(BeEmpty())
			return
		}
		Expect(names).To(ConsistOf("main", "only-"+step))
		Expect(w.read(ctx, "main")).To(HaveKeyWithValue("step", step))
		deployed := 0
		for _, revision := range history {
			Expect(revision).NotTo(ContainSubstring("pending"))
			if strings.HasSuffix(revision, " deployed") {
				deployed++
			}
		}
		Expect(deployed).To(Equal(1), "deployed revisions in %v", history)
	}

	By("installing")
	w.create(ctx, "item", configuration("one", false))
	Expect(w.finished(ctx, "item")).To(beSucceeded())
	check("one")
	By("upgrading")
	Expect(w.update(ctx, "item", configuration("two", false))).To(beSucceeded())
	check("two")
	By("rolling back")
	Expect(w.update(ctx, "item", configuration("three", true))).To(beFailed("Service"))
	check("two")
	w.edit(ctx, "main", func(cm *corev1.ConfigMap) { cm.Data["step"] = "drift" })
	Eventually(w.data(ctx, "main")).Should(HaveKeyWithValue("step", "two"))
	By("upgrading again")
	Expect(w.update(ctx, "item", configuration("four", false))).To(beSucceeded())
	check("four")
	By("correcting drift")
	w.edit(ctx, "main", func(cm *corev1.ConfigMap) { cm.Data["step"] = "drift" })
	Eventually(w.data(ctx, "main")).Should(HaveKeyWithValue("step", "four"))
	By("uninstalling")
	w.remove(ctx, "item")
	check("")
	Expect(pending.list()).To(BeEmpty(), "operations at the same time")
	hooks.mu.Lock()
	defer hooks.mu.Unlock()
	for name, usual := range map[string]int{"hook-one": 1, "hook-two": 2, "hook-three": 1, "hook-four": 2} { // two: upgrade, rollback; four: upgrade, deletion
		Expect(hooks.created[name]).To(BeNumerically("<=", usual+1), "runs of %s", name)
	}
	return network.Report()
}

// systematicTrial is a fault at a point of the story.
type systematicTrial struct {
	point faultnet.Point
	fault faultnet.Fault
}

// stableName returns a name for the object of a request that is the same in each run.
func stableName(r faultnet.Request) string {
	if strings.HasPrefix(r.Name, "helm-") {
		return "helm-*"
	}
	return r.Name
}

// chooseTrials returns the trials that the suite runs.
func chooseTrials(all []systematicTrial) []systematicTrial {
	GinkgoHelper()
	seed := uint64(1)
	switch text := os.Getenv("DEPLOYERKIT_SYSTEMATIC"); text {
	case "all":
		return all
	case "":
	default:
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		Expect(err).NotTo(HaveOccurred(), "DEPLOYERKIT_SYSTEMATIC")
	}
	dice := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it is to be repeatable, not secret
	all = slices.Clone(all)
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), sampledTrials)]
}

var _ = Describe("A release", Label("systematic"), func() {
	It("recovers from a kill at any write, a stale response to any read, and a disturbed watch [Ex7]", func(ctx SpecContext) {
		report := tell(ctx, faultnet.Scenario{RecordPoints: true, Alias: stableName})
		var all []systematicTrial
		for _, point := range report.Points {
			for _, fault := range point.SelectFaults() {
				all = append(all, systematicTrial{point, fault})
			}
		}
		Expect(len(all)).To(BeNumerically(">", 50), "the number of trials")
		chosen := chooseTrials(all)
		todo := make(chan systematicTrial, len(chosen))
		for _, t := range chosen {
			todo <- t
		}
		close(todo)
		begin, runs, missed, mu := time.Now(), 0, []string{}, sync.Mutex{}
		var running sync.WaitGroup
		for range trialWorkers {
			running.Go(func() {
				for t := range todo {
					made, hit := tryPoint(ctx, t)
					mu.Lock()
					if runs += made; !hit {
						missed = append(missed, fmt.Sprintf("%s: %s", t.point, t.fault))
					}
					mu.Unlock()
				}
			})
		}
		running.Wait()
		_, _ = fmt.Fprintf(os.Stdout, "\n%d points, %d trials, %d chosen, %d runs, %d not reached, %s\n", len(report.Points), len(all), len(chosen), runs, len(missed), time.Since(begin).Round(time.Second))
		Expect(len(missed)).To(BeNumerically("<=", 2+len(chosen)/20), "points that were not reached: %v", missed)
	}, SpecTimeout(30*time.Minute))
})

// tryPoint runs the story with a fault until the fault hits its point. It returns the number of runs. If the story fails,
// the spec fails, but other trials continue.
func tryPoint(ctx context.Context, t systematicTrial) (runs int, hit bool) {
	defer GinkgoRecover()
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(os.Stdout, "\nfailed: %s: %s\n", t.point, t.fault)
			hit = true
			panic(p)
		}
	}()
	for runs = 0; runs < trialRuns && !hit && ctx.Err() == nil; runs++ {
		rule := t.point.NewRule(t.fault)
		rule.Optional = true
		hit = t.point.WasHit(tell(ctx, faultnet.Scenario{Rules: []faultnet.Rule{rule}}))
	}
	return runs, hit
}

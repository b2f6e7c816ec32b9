// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// killer is the network between one process and its API servers, which are the Landscaper cluster and the targets. It
// kills the process at a certain write.
type killer struct {
	*faultnet.Network
	at     int  // number of the write at which the process is killed, or 0 to kill no process
	before bool // if true, the process is killed before this write takes effect; otherwise, after it has taken effect
}

// newKiller returns a killer that counts writes after Enable is called. If `only` is not nil, the killer counts only
// writes for which `only` returns true.
func newKiller(at int, before bool, only func(faultnet.Request) bool) *killer {
	GinkgoHelper()
	rule := faultnet.Rule{Match: faultnet.Match{Verb: faultnet.WriteVerb, Where: only}, Nth: at}
	switch {
	case at > 0 && before:
		rule.Fault = faultnet.KillBefore()
	case at > 0:
		rule.Fault = faultnet.KillAfter()
	}
	k := &killer{Network: faultnet.Start(GinkgoTB(), faultnet.Scenario{Rules: []faultnet.Rule{rule}}), at: at, before: before}
	k.Disable()
	return k
}

func (k *killer) sumWrites() int { return k.Report().Rules[0].Matched }

// startProcess starts the deployer as a process that the killer k can kill.
func (w *env) startProcess(k *killer) *landscapertest.Manager {
	GinkgoHelper()
	options := w.options
	options.WrapTransport = k.Transport
	args := manifest.Args(nil, options)
	args.Type = w.Type
	return landscapertest.StartManager(GinkgoTB(), k.Wrap(cp.Config), args)
}

// job is a job during which a process is killed.
type job struct {
	before []any // the manifests that are deployed before the job; nil if the item is new
	after  []any // the manifests of the job; nil if the job deletes the item
	gone   []string
	// calledOff is true if the item is deleted after the kill. In that case, no process deploys the manifests of the
	// job.
	calledOff bool
}

const jobID = "the-job"

// start starts the job.
func (j job) start(ctx context.Context, w *env) {
	GinkgoHelper()
	switch {
	case j.before == nil:
		di := w.Landscaper.Item(w.Namespace, "item", w.Type, config(nil, j.after...))
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		Expect(w.Landscaper.Create(ctx, di)).To(Succeed())
	case j.after == nil:
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
	default:
		Expect(w.Landscaper.Update(ctx, w.Key("item"), config(nil, j.after...))).To(Succeed())
	}
	Expect(w.Landscaper.TriggerWithJobID(ctx, w.Key("item"), jobID)).To(Succeed())
}

// waitUntilEnded waits until the job has ended.
func (j job) waitUntilEnded(ctx context.Context, w *env) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if j.after == nil {
		return w.Landscaper.WaitForDeletion(ctx, w.Key("item"))
	}
	di, err := w.Landscaper.WaitForJob(ctx, w.Key("item"), jobID)
	if err == nil && di.Status.Phase != phases.Succeeded {
		return fmt.Errorf("phase %s: %+v", di.Status.Phase, di.Status.LastError)
	}
	return err
}

// run runs the job with a process that the killer may kill, and then with a new process. It checks the result. It
// returns the number of writes of the first process.
func (j job) run(ctx context.Context, manifests func(*env) job, k *killer) int {
	GinkgoHelper()
	w := newEnv(ctx, contract.RevisionJobID)
	j = manifests(w)
	jobs := w.watchJobs()
	foreign := w.createForeignConfigMaps(ctx)
	first := w.startProcess(k)
	var item *lsv1alpha1.DeployItem
	if j.before != nil {
		item = w.CreateAndRun(ctx, "item", config(nil, j.before...))
		Expect(item.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", item.Status.LastError)
	}
	k.Enable()
	j.start(ctx, w)
	if item == nil {
		var err error
		item, err = w.Landscaper.Get(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
	}
	second := first
	if k.at > 0 {
		Eventually(k.Killed()).WithTimeout(patience).Should(BeClosed(), "the job made only %d writes", k.sumWrites())
		first.Kill()
		second = w.startProcess(newKiller(0, false, nil))
	}
	if j.calledOff && k.at > 0 {
		Expect(w.Landscaper.Delete(ctx, w.Key("item"))).To(Succeed())
		j = job{gone: j.listNames()}
	}
	Expect(j.waitUntilEnded(ctx, w)).To(Succeed())
	second.Stop()
	j.check(ctx, w, item)
	for _, cm := range foreign {
		Expect(w.Read(ctx, cm.Name)).To(Equal(cm), "an object that is not the item's")
	}
	jobs.expectEndedOnce(jobID, j.after == nil)
	return k.sumWrites()
}

// check requires that the expected objects exist and that no other objects have the label of the item.
func (j job) check(ctx context.Context, w *env, item *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	wanted := map[string]map[string]string{}
	for i, name := range j.listNames() {
		wanted[name] = j.after[i].(map[string]any)["data"].(map[string]string)
	}
	list := &corev1.ConfigMapList{}
	Expect(w.Client.List(ctx, list, client.MatchingLabels{ownership.LabelItem: string(item.UID)})).To(Succeed())
	got := map[string]map[string]string{}
	for i := range list.Items {
		got[list.Items[i].Name] = list.Items[i].Data
	}
	Expect(got).To(Equal(wanted))
	for _, name := range j.gone {
		Expect(w.Read(ctx, name)).To(BeNil(), name)
	}
	if j.after == nil {
		_, err := w.Landscaper.Get(ctx, w.Key("item"))
		Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		return
	}
	Expect(w.inventory(ctx, "item")).To(HaveLen(len(wanted)))
}

// listNames returns the names of the objects that the manifests of the job contain.
func (j job) listNames() []string {
	out := []string{}
	for _, one := range j.after {
		out = append(out, one.(map[string]any)["metadata"].(map[string]any)["name"].(string))
	}
	return out
}

// createForeignConfigMaps creates objects that do not belong to the item, so that the deployer must not change them.
func (w *env) createForeignConfigMaps(ctx context.Context) []*corev1.ConfigMap {
	GinkgoHelper()
	out := []*corev1.ConfigMap{}
	for name, label := range map[string]string{"unowned": "", "anothers": "00000000-0000-0000-0000-000000000001"} {
		cm := &corev1.ConfigMap{Data: map[string]string{"key": "theirs"}}
		cm.Namespace, cm.Name = w.Namespace, name
		if label != "" {
			cm.Labels = map[string]string{ownership.LabelItem: label}
		}
		Expect(w.Client.Create(ctx, cm)).To(Succeed())
		out = append(out, w.Read(ctx, name))
	}
	return out
}

// killedJobs contains the jobs that the specs kill. Each job creates, updates or deletes five objects. The job "an
// update with prune" does all three.
var killedJobs = map[string]func(*env) job{
	"an install":                    func(w *env) job { return job{after: w.configMaps(5, "a")} },
	"an install that is called off": func(w *env) job { return job{after: w.configMaps(5, "a"), calledOff: true} },
	"an update with prune": func(w *env) job {
		after := append(w.configMaps(3, "b"), w.configMap("cm-5", map[string]string{"key": "b"}))
		return job{before: w.configMaps(5, "a"), after: after, gone: []string{"cm-3", "cm-4"}}
	},
	"a delete": func(w *env) job {
		return job{before: w.configMaps(5, "a"), gone: []string{"cm-0", "cm-1", "cm-2", "cm-3", "cm-4"}}
	},
}

var _ = Describe("Killed processes", func() {
	for name, manifests := range killedJobs {
		It("the next process completes "+name+" after its predecessor was killed at any write", world.Slow, func(ctx SpecContext) {
			writes := job{}.run(ctx, manifests, newKiller(0, false, nil))
			Expect(writes).To(BeNumerically(">", 6), "the start, five objects and the end")
			var runs []*killer
			for n := range writes {
				runs = append(runs, newKiller(n+1, false, nil), newKiller(n+1, true, nil))
			}
			GinkgoWriter.Printf("%s: %d writes\n", name, writes)
			inParallel(6, runs, func(k *killer) {
				By(fmt.Sprintf("killed at write %d, before it took effect: %t", k.at, k.before))
				job{}.run(ctx, manifests, k)
			})
		}, SpecTimeout(10*time.Minute))
	}

	It("a deletion leaves an object that another client created under a name that the killed process was about to use", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		k := newKiller(1, true, func(r faultnet.Request) bool { return r.Resource == "configmaps" })
		k.Enable()
		first := w.startProcess(k)
		w.Create(ctx, "item", config(nil, w.configMaps(3, "a")...))
		Eventually(k.Killed()).WithTimeout(patience).Should(BeClosed())
		first.Kill()
		Expect(w.inventory(ctx, "item")).To(HaveLen(3), "the inventory lists the objects that may have been written")
		cm := &corev1.ConfigMap{Data: map[string]string{"key": "theirs"}}
		cm.Namespace, cm.Name = w.Namespace, "cm-1"
		Expect(w.Client.Create(ctx, cm)).To(Succeed())
		before := w.Read(ctx, "cm-1")

		w.startProcess(newKiller(0, false, nil))
		Expect(w.Landscaper.Delete(ctx, w.Key("item"))).To(Succeed())
		Expect(w.Read(ctx, "cm-1")).To(Equal(before))
	}, SpecTimeout(8*time.Minute))
})

// inParallel calls f for each element of a list, with at most workers concurrent calls.
func inParallel[T any](workers int, all []T, f func(T)) {
	GinkgoHelper()
	todo := make(chan T, len(all))
	for _, one := range all {
		todo <- one
	}
	close(todo)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			defer GinkgoRecover()
			for one := range todo {
				f(one)
			}
		})
	}
	running.Wait()
}

// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// The method `meanwhile` returns an answer of the fake deployer. After the deployer has returned and before the next
// write of the status is sent, `do` is called once.
func (w *env) meanwhile(do func()) landscapertest.Answer {
	return func(_ context.Context, in landscapertest.Input) error {
		var once sync.Once
		w.Counter.Inject(faultnet.When(statusOf, func(*http.Request) (*http.Response, error) {
			once.Do(do)
			return nil, nil
		}))
		gvk := schema.GroupVersionKind{Group: "faults.deployerkit.dev", Version: "v1", Kind: "Known"}
		return deployerlib.SetProviderStatus(in.Item, map[string]string{"object": in.Item.Status.JobID}, gvk)
	}
}

var _ = Describe("Writes between the return of the deployer and the last write [decision 10]", func() {
	It("an interrupt ends the job, and the provider status of the deployer is stored", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		key := w.Key("item")
		w.fake.On(contract.ActionReconcile, w.meanwhile(func() {
			defer GinkgoRecover()
			Expect(w.Landscaper.Interrupt(ctx, key)).To(Succeed())
		}))
		h := w.watchHistory()
		w.start()
		w.deploy(ctx, "item")
		di := w.await(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Status.ProviderStatus != nil })
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Reason).To(Equal("InterruptOperation"))
		h.once(di.Status.JobID)
		Consistently(func() int { return len(w.fake.Calls(key)) }).Should(Equal(1))
		job := w.trigger(ctx, key)
		Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		h.once(job)
	}, SpecTimeout(5*time.Minute))

	It("a new job is run, and the outcome of the old job does not end it", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		key := w.Key("item")
		w.fake.On(contract.ActionReconcile, w.meanwhile(func() {
			defer GinkgoRecover()
			Expect(w.Landscaper.TriggerAs(ctx, key, "second")).To(Succeed())
		}))
		h := w.watchHistory()
		w.start()
		w.deploy(ctx, "item")
		di, err := w.Landscaper.AwaitJob(within(ctx, patience), key, "second")
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(di.Status.ProviderStatus).NotTo(BeNil())
		calls := w.fake.Calls(key)
		Expect(calls).To(HaveLen(2))
		Expect(calls[1].JobID).To(Equal("second"))
		h.once("second")
	}, SpecTimeout(5*time.Minute))

	It("a changed spec is run under the annotation revision", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionAnnotation)
		key := w.Key("item")
		w.fake.On(contract.ActionReconcile, w.meanwhile(func() {
			defer GinkgoRecover()
			Expect(w.Landscaper.Update(ctx, key, body(`"replicas":2`))).To(Succeed())
		}))
		w.start()
		w.deploy(ctx, "item")
		w.calls(ctx, key, contract.ActionReconcile, 2)
		di := w.finished(ctx, key)
		Expect(di.Status.ObservedGeneration).To(Equal(di.Generation))
		Expect(di.Generation).To(BeEquivalentTo(2))
	}, SpecTimeout(5*time.Minute))

	It("a requested deletion is executed", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionAnnotation)
		key := w.Key("item")
		w.fake.On(contract.ActionReconcile, w.meanwhile(func() {
			defer GinkgoRecover()
			Expect(w.Landscaper.Mark(ctx, key)).To(Succeed())
		}))
		w.start()
		w.deploy(ctx, "item")
		Expect(w.Landscaper.AwaitGone(within(ctx, patience), key)).To(Succeed())
		Expect(w.fake.Count(key, contract.ActionDelete)).To(Equal(1))
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Write conflicts", func() {
	It("a storm of conflicts delays jobs, and each job ends once", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		h := w.watchHistory()
		w.start()
		var storm sync.WaitGroup
		windy, calm := context.WithTimeout(ctx, 3*time.Second)
		defer calm()
		jobs := []string{}
		for i := range 5 {
			key := w.deploy(ctx, fmt.Sprintf("item-%d", i))
			storm.Go(func() {
				for n := 0; windy.Err() == nil; n++ {
					// the context is cancelled at the end of the storm, so this call may return an error
					_ = w.Landscaper.Annotate(windy, key, map[string]string{"gust": fmt.Sprint(n)})
				}
			})
			jobs = append(jobs, w.trigger(ctx, key))
		}
		storm.Wait()
		for i := range jobs {
			Expect(w.finished(ctx, w.Key(fmt.Sprintf("item-%d", i))).Status.Phase).To(Equal(phases.Succeeded))
		}
		h.once(jobs...)
	}, SpecTimeout(5*time.Minute))

	It("two processes that work at the same time end each job once [decisions 10, 54]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.fake.Always(contract.ActionReconcile, landscapertest.Block(soon()))
		h := w.watchHistory()
		w.start()
		other := landscapertest.NewFake().Always(contract.ActionReconcile, landscapertest.Block(soon()))
		args := w.args
		args.Deployer = other
		landscapertest.StartManager(GinkgoTB(), cp.Config, args)
		jobs, keys := []string{}, []types.NamespacedName{}
		for i := range 20 {
			keys = append(keys, w.deploy(ctx, fmt.Sprintf("item-%d", i)))
		}
		for range 2 {
			for _, key := range keys {
				di := w.finished(ctx, key)
				jobs = append(jobs, di.Status.JobID)
				Expect(di.Status.Phase).To(Equal(phases.Succeeded))
				w.trigger(ctx, key)
			}
		}
		for _, key := range keys {
			w.finished(ctx, key)
		}
		h.once(jobs...)
		Expect(other.Faults()).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})

// The function `soon` returns a channel that is closed after a moment. Calls that wait for it overlap in time.
func soon() <-chan struct{} {
	c := make(chan struct{})
	timer := time.AfterFunc(moment, func() { close(c) })
	DeferCleanup(timer.Stop)
	return c
}

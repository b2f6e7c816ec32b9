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

// runBeforeStatusWrite returns an answer of the fake deployer. After the deployer has returned and before the next
// write of the status is sent, `do` is called once.
func (w *env) runBeforeStatusWrite(do func()) landscapertest.Answer {
	return func(_ context.Context, in landscapertest.Input) error {
		var once sync.Once
		w.Counter.SetInjector(faultnet.When(statusOf, func(*http.Request) (*http.Response, error) {
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
		w.fake.QueueAnswers(contract.ActionReconcile, w.runBeforeStatusWrite(func() {
			defer GinkgoRecover()
			Expect(w.Landscaper.Interrupt(ctx, key)).To(Succeed())
		}))
		h := w.watchHistory()
		w.start()
		w.createAndStart(ctx, "item")
		di := w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Status.ProviderStatus != nil })
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Reason).To(Equal("InterruptOperation"))
		h.expectEndedOnce(di.Status.JobID)
		Consistently(func() int { return len(w.fake.ListCalls(key)) }).Should(Equal(1))
		job := w.startJob(ctx, key)
		Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		h.expectEndedOnce(job)
	}, SpecTimeout(5*time.Minute))

	It("a new job is run, and the outcome of the old job does not end it", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		key := w.Key("item")
		w.fake.QueueAnswers(contract.ActionReconcile, w.runBeforeStatusWrite(func() {
			defer GinkgoRecover()
			Expect(w.Landscaper.TriggerWithJobID(ctx, key, "second")).To(Succeed())
		}))
		h := w.watchHistory()
		w.start()
		w.createAndStart(ctx, "item")
		di, err := w.Landscaper.WaitForJob(withTimeout(ctx, patience), key, "second")
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(di.Status.ProviderStatus).NotTo(BeNil())
		calls := w.fake.ListCalls(key)
		Expect(calls).To(HaveLen(2))
		Expect(calls[1].JobID).To(Equal("second"))
		h.expectEndedOnce("second")
	}, SpecTimeout(5*time.Minute))

	It("a changed spec is run under the annotation revision", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionAnnotation)
		key := w.Key("item")
		w.fake.QueueAnswers(contract.ActionReconcile, w.runBeforeStatusWrite(func() {
			defer GinkgoRecover()
			Expect(w.Landscaper.Update(ctx, key, newConfigBody(`"replicas":2`))).To(Succeed())
		}))
		w.start()
		w.createAndStart(ctx, "item")
		w.waitForCall(ctx, key, contract.ActionReconcile, 2)
		di := w.finished(ctx, key)
		Expect(di.Status.ObservedGeneration).To(Equal(di.Generation))
		Expect(di.Generation).To(BeEquivalentTo(2))
	}, SpecTimeout(5*time.Minute))

	It("a requested deletion is executed", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionAnnotation)
		key := w.Key("item")
		w.fake.QueueAnswers(contract.ActionReconcile, w.runBeforeStatusWrite(func() {
			defer GinkgoRecover()
			Expect(w.Landscaper.MarkForDeletion(ctx, key)).To(Succeed())
		}))
		w.start()
		w.createAndStart(ctx, "item")
		Expect(w.Landscaper.WaitForDeletion(withTimeout(ctx, patience), key)).To(Succeed())
		Expect(w.fake.CountCalls(key, contract.ActionDelete)).To(Equal(1))
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Write conflicts", func() {
	It("many write conflicts delay jobs, but each job ends exactly once", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		h := w.watchHistory()
		w.start()
		var storm sync.WaitGroup
		windy, calm := context.WithTimeout(ctx, 3*time.Second)
		defer calm()
		jobs := []string{}
		for i := range 5 {
			key := w.createAndStart(ctx, fmt.Sprintf("item-%d", i))
			storm.Go(func() {
				for n := 0; windy.Err() == nil; n++ {
					// the context is cancelled at the end of the storm, so this call may return an error
					_ = w.Landscaper.SetAnnotations(windy, key, map[string]string{"gust": fmt.Sprint(n)})
				}
			})
			jobs = append(jobs, w.startJob(ctx, key))
		}
		storm.Wait()
		for i := range jobs {
			Expect(w.finished(ctx, w.Key(fmt.Sprintf("item-%d", i))).Status.Phase).To(Equal(phases.Succeeded))
		}
		h.expectEndedOnce(jobs...)
	}, SpecTimeout(5*time.Minute))

	It("two processes that work at the same time end each job once [decisions 10, 54]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.BlockUntil(closeAfterMoment()))
		h := w.watchHistory()
		w.start()
		other := landscapertest.NewFake().SetDefaultAnswer(contract.ActionReconcile, landscapertest.BlockUntil(closeAfterMoment()))
		args := w.args
		args.Deployer = other
		landscapertest.StartManager(GinkgoTB(), cp.Config, args)
		jobs, keys := []string{}, []types.NamespacedName{}
		for i := range 20 {
			keys = append(keys, w.createAndStart(ctx, fmt.Sprintf("item-%d", i)))
		}
		for range 2 {
			for _, key := range keys {
				di := w.finished(ctx, key)
				jobs = append(jobs, di.Status.JobID)
				Expect(di.Status.Phase).To(Equal(phases.Succeeded))
				w.startJob(ctx, key)
			}
		}
		for _, key := range keys {
			w.finished(ctx, key)
		}
		h.expectEndedOnce(jobs...)
		Expect(other.OverlappingCalls()).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})

// closeAfterMoment returns a channel that is closed after a moment. Calls that wait for it overlap in time.
func closeAfterMoment() <-chan struct{} {
	c := make(chan struct{})
	timer := time.AfterFunc(moment, func() { close(c) })
	DeferCleanup(timer.Stop)
	return c
}

// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// isItemWrite reports whether a request writes a deploy item.
func isItemWrite(r faultnet.Request) bool { return r.Resource == "deployitems" && r.Verb == "patch" }

// statusOf reports whether a request writes the status of a deploy item.
func statusOf(r faultnet.Request) bool { return isItemWrite(r) && r.Subresource == "status" }

// dropResponses returns an injector that sends requests and drops the responses.
func dropResponses() faultnet.Injector {
	GinkgoHelper()
	transport, err := rest.TransportFor(cp.Config)
	Expect(err).NotTo(HaveOccurred())
	return func(req *http.Request) (*http.Response, error) {
		res, err := transport.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return nil, errors.Join(errors.New("the connection broke"), err, res.Body.Close())
	}
}

// delayRequests returns an injector that delays a request for the duration d, or until the client stops waiting if that
// is earlier. It then returns an error.
func delayRequests(d time.Duration) faultnet.Injector {
	return func(req *http.Request) (*http.Response, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil, errors.New("timeout awaiting response headers")
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}

var _ = Describe("API server with faults", func() {
	kinds := map[string]func() faultnet.Injector{
		"responds with 409":  func() faultnet.Injector { return faultnet.ReturnStatus(409, metav1.StatusReasonConflict) },
		"responds with 429":  func() faultnet.Injector { return faultnet.ReturnStatus(429, metav1.StatusReasonTooManyRequests) },
		"responds with 500":  func() faultnet.Injector { return faultnet.ReturnStatus(500, metav1.StatusReasonInternalError) },
		"does not respond":   func() faultnet.Injector { return delayRequests(200 * time.Millisecond) },
		"loses its response": dropResponses,
	}
	for _, revision := range both {
		for kind, inject := range kinds {
			It(addRevision("a job ends although the API server "+kind+" to its writes", revision), func(ctx SpecContext) {
				w := newEnv(ctx, revision).start()
				w.Counter.SetInjector(faultnet.When(isItemWrite, faultnet.OnlyFirst(3, inject())))
				key := w.createAndStart(ctx, "item")
				Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
				w.startJob(ctx, key)
				w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool {
					return di.Status.JobID == di.Status.JobIDFinished && contract.IsFinal(di.Status.Phase)
				})
			}, SpecTimeout(5*time.Minute))

			It(addRevision("the outcome of a job is stored without another call although the API server "+kind+" to the last write [decision 10]", revision), func(ctx SpecContext) {
				w := newEnv(ctx, revision)
				var injected atomic.Bool
				w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
					if injected.CompareAndSwap(false, true) {
						w.Counter.SetInjector(faultnet.When(statusOf, faultnet.OnlyFirst(4, inject())))
					}
					return nil
				})
				w.start()
				key := w.createAndStart(ctx, "item")
				Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
				Consistently(func() int { return len(w.fake.ListCalls(key)) }).Should(Equal(1))
			}, SpecTimeout(5*time.Minute))

			It(addRevision("a deletion ends without another call although the API server "+kind+" to the last write", revision), func(ctx SpecContext) {
				w := newEnv(ctx, revision)
				w.fake.QueueAnswers(contract.ActionDelete, func(context.Context, landscapertest.Input) error {
					w.Counter.SetInjector(faultnet.When(isItemWrite, faultnet.OnlyFirst(4, inject())))
					return nil
				})
				w.start()
				key := w.createAndStart(ctx, "item")
				w.finished(ctx, key)
				Expect(w.Landscaper.Delete(withTimeout(ctx, patience), key)).To(Succeed())
				Expect(w.fake.CountCalls(key, contract.ActionDelete)).To(Equal(1))
			}, SpecTimeout(5*time.Minute))
		}
	}

	It("a job ends once although the API server is away for 30 s during the job [decision 10]", func(ctx SpecContext) {
		const outage = 30 * time.Second
		w := newEnv(ctx, contract.RevisionJobID)
		release := make(chan struct{})
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.BlockUntil(release))
		w.start()
		key := w.createAndStart(ctx, "item")
		w.waitForCall(ctx, key, contract.ActionReconcile, 1)
		Expect(cp.StopAPIServer()).To(Succeed())
		DeferCleanup(func() error { return cp.StartAPIServer() })
		close(release)
		Consistently(func() int { return len(w.fake.ListCalls(key)) }, outage).Should(Equal(1))
		Expect(cp.StartAPIServer()).To(Succeed())
		// The watches of the deployer may need another half minute to reconnect. The outcome of the run does not depend
		// on the watches.
		Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		Expect(w.fake.ListCalls(key)).To(HaveLen(1))
	}, SpecTimeout(8*time.Minute))
})

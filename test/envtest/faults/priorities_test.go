// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Backlog of periodic runs", func() {
	for _, revision := range both {
		It(addRevision("deletions and operations start before the periodic runs of other items", revision), func(ctx SpecContext) {
			const backlog = 200
			var passes atomic.Int64
			gate := make(chan struct{}, backlog)
			var closed atomic.Bool
			w := newEnv(ctx, revision)
			w.args.Options.MaxConcurrentReconciles = 1
			w.fake.RegisterHook(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
				if !closed.Load() || di.DeletionTimestamp != nil {
					return nil, nil
				}
				<-gate
				passes.Add(1)
				return nil, nil
			}, extension.ShouldReconcileHook)
			var ahead atomic.Int64
			w.fake.SetDefaultAnswer(contract.ActionDelete, func(context.Context, landscapertest.Input) error {
				ahead.Store(passes.Load())
				return nil
			})
			w.start()
			for i := range backlog {
				w.createAndStart(ctx, fmt.Sprintf("item-%d", i))
			}
			for i := range backlog {
				w.finished(ctx, w.Key(fmt.Sprintf("item-%d", i)))
			}
			closed.Store(true)
			for i := range backlog {
				w.triggerReconcile(w.Key(fmt.Sprintf("item-%d", i)))
			}
			last := w.Key(fmt.Sprintf("item-%d", backlog-1))
			Expect(w.Landscaper.MarkForDeletion(ctx, last)).To(Succeed())
			Expect(world.RevisionOf(revision).Request(ctx, w.Landscaper, last)).To(Succeed())
			// Allow one reconcile after the other until the worker processes the deletion.
			Eventually(func() int {
				gate <- struct{}{}
				return w.fake.CountCalls(last, contract.ActionDelete)
			}).Should(Equal(1))
			close(gate)
			Expect(w.Landscaper.WaitForDeletion(withTimeout(ctx, patience), last)).To(Succeed())
			Eventually(passes.Load).Should(BeNumerically(">=", backlog-1))
			Expect(ahead.Load()).To(BeNumerically("<=", backlog/10))
		}, SpecTimeout(5*time.Minute))
	}
})

var _ = Describe("Jobs that were requested before the start of the deployer", func() {
	It("jobs start before the periodic runs of the finished items, with one worker [F68]", func(ctx SpecContext) {
		const backlog = 100
		w := newEnv(ctx, contract.RevisionJobID)
		w.start()
		for i := range backlog {
			w.createAndStart(ctx, fmt.Sprintf("item-%d", i))
		}
		for i := range backlog {
			w.finished(ctx, w.Key(fmt.Sprintf("item-%d", i)))
		}
		w.Manager.Stop()
		jobs := map[string]bool{"item-0": true, "item-33": true, "item-66": true, "item-99": true}
		for name := range jobs {
			w.startJob(ctx, w.Key(name))
		}

		var periodic, ahead atomic.Int64 // runs of the other items, altogether and before the last job
		again := landscapertest.NewFake()
		again.RegisterHook(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
			if jobs[di.Name] {
				return nil, nil
			}
			return &extension.HookResult{}, nil // forces a run
		}, extension.ShouldReconcileHook)
		again.SetDefaultAnswer(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			if jobs[in.Item.Name] {
				ahead.Store(periodic.Load())
				return nil
			}
			periodic.Add(1)
			select { // a run of each item takes two seconds in total, so the worker is never idle
			case <-time.After(2 * time.Second / backlog):
			case <-ctx.Done():
			}
			return deployerlib.WaitFor("the next run", time.Second)
		})
		w.args.Deployer, w.args.Options.MaxConcurrentReconciles = again, 1
		w.Start(w.args)
		for name := range jobs {
			w.finished(ctx, w.Key(name))
		}
		Expect(ahead.Load()).To(BeNumerically("<=", backlog/10), "periodic runs before the last job")
		Eventually(periodic.Load).WithTimeout(patience).Should(BeNumerically(">=", backlog), "the periodic runs follow")
		Expect(again.OverlappingCalls()).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})

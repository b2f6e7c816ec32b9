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
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("a backlog of periodic work", func() {
	for _, revision := range both {
		It(title("is overtaken by deletions and operations", revision), func(ctx SpecContext) {
			const backlog = 200
			var passes atomic.Int64
			gate := make(chan struct{}, backlog)
			var closed atomic.Bool
			w := newEnv(ctx, revision)
			w.args.Options.MaxConcurrentReconciles = 1
			w.fake.Hook(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
				if !closed.Load() || di.DeletionTimestamp != nil {
					return nil, nil
				}
				<-gate
				passes.Add(1)
				return nil, nil
			}, extension.ShouldReconcileHook)
			var ahead atomic.Int64
			w.fake.Always(contract.ActionDelete, func(context.Context, landscapertest.Input) error {
				ahead.Store(passes.Load())
				return nil
			})
			w.start()
			for i := range backlog {
				w.deploy(ctx, fmt.Sprintf("item-%d", i))
			}
			for i := range backlog {
				w.finished(ctx, w.Key(fmt.Sprintf("item-%d", i)))
			}
			closed.Store(true)
			for i := range backlog {
				w.wake(w.Key(fmt.Sprintf("item-%d", i)))
			}
			last := w.Key(fmt.Sprintf("item-%d", backlog-1))
			Expect(w.Landscaper.Mark(ctx, last)).To(Succeed())
			Expect(world.RevisionOf(revision).Request(ctx, w.Landscaper, last)).To(Succeed())
			// Allow one reconcile after the other until the worker processes the deletion.
			Eventually(func() int {
				gate <- struct{}{}
				return w.fake.Count(last, contract.ActionDelete)
			}).Should(Equal(1))
			close(gate)
			Expect(w.Landscaper.AwaitGone(within(ctx, patience), last)).To(Succeed())
			Eventually(passes.Load).Should(BeNumerically(">=", backlog-1))
			Expect(ahead.Load()).To(BeNumerically("<=", backlog/10))
		}, SpecTimeout(5*time.Minute))
	}
})

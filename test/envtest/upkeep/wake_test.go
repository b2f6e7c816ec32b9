// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/internal/testtime"
)

var _ = Describe("a wish for a background run", func() {
	It("makes one run however often it comes, and no more", func(ctx SpecContext) {
		w := newEnv(ctx)
		soon := time.Now().Add(time.Second)
		for range 10 {
			w.keeper.Wake(w.uid, soon)
		}
		w.isQuietAfter(1)
		Expect(w.finished(ctx).Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded))
	})

	It("that comes during a run makes exactly one more", func(ctx SpecContext) {
		w := newEnv(ctx)
		var woken atomic.Bool
		w.runsDo(func(context.Context, *lsv1alpha1.DeployItem) error {
			if !woken.Swap(true) {
				w.keeper.Wake(w.uid, time.Time{})
				w.keeper.Wake(w.uid, time.Time{})
			}
			return nil
		})
		w.keeper.Wake(w.uid, time.Time{})
		w.isQuietAfter(2)
	})

	It("that comes during a job makes exactly one run after it", func(ctx SpecContext) {
		w := newEnv(ctx)
		var woken atomic.Bool
		w.runsDo(func(context.Context, *lsv1alpha1.DeployItem) error {
			if !woken.Swap(true) {
				w.keeper.Wake(w.uid, time.Time{})
			}
			return nil
		})
		_, err := w.Landscaper.Trigger(ctx, w.key)
		Expect(err).NotTo(HaveOccurred())
		w.isQuietAfter(1)
	})

	It("waits for its time", func(ctx SpecContext) {
		w := newEnv(ctx)
		begun := time.Now()
		w.keeper.Wake(w.uid, begun.Add(2*time.Second))
		Eventually(w.runs.Load).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(BeEquivalentTo(1))
		Expect(time.Since(begun)).To(And(BeNumerically(">=", 2*time.Second), BeNumerically("<", testtime.Stretch(10*time.Second))))
		w.isQuietAfter(1)
	})

	It("survives runs that fail", func(ctx SpecContext) {
		w := newEnv(ctx)
		var failures atomic.Int32
		w.runsDo(func(context.Context, *lsv1alpha1.DeployItem) error {
			if failures.Add(1) <= 2 {
				return errors.New("not now")
			}
			return nil
		})
		w.keeper.Wake(w.uid, time.Time{})
		w.isQuietAfter(3)
	})

	It("waits while the owner wants no runs", func(ctx SpecContext) {
		w := newEnv(ctx)
		Expect(w.Landscaper.Annotate(ctx, w.key, map[string]string{continuousreconcile.ActiveAnnotation: "false"})).To(Succeed())
		Eventually(func() string {
			di := &lsv1alpha1.DeployItem{}
			_ = w.Manager.GetClient().Get(ctx, w.key, di)
			return di.Annotations[continuousreconcile.ActiveAnnotation]
		}).WithTimeout(patience).Should(Equal("false"))
		w.keeper.Wake(w.uid, time.Time{})
		w.isQuietAfter(0)
		Expect(w.Landscaper.Annotate(ctx, w.key, map[string]string{continuousreconcile.ActiveAnnotation: "true"})).To(Succeed())
		w.isQuietAfter(1)
	})

	It("is heard by a new process as soon as it has seen the item", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.Manager.Stop()
		w.start()
		Eventually(func() int32 {
			w.keeper.Wake(w.uid, time.Time{})
			return w.runs.Load()
		}).WithTimeout(patience).Should(BeNumerically(">=", 1))
	})

	It("does not speed up a fight, which a job does not wait for", func(ctx SpecContext) {
		w := newEnv(ctx)
		runs := w.runs.Load()
		for range 2 { // the third edit in a short time counts as a fight
			w.edit(ctx)
			runs++
			Eventually(w.runs.Load).WithTimeout(patience).Should(BeNumerically(">=", runs))
			Eventually(w.data).WithArguments(ctx).WithTimeout(patience).Should(HaveKeyWithValue("a", "b"))
			w.isQuietAfter(runs)
		}
		w.edit(ctx)
		runs++ // this run sets the condition that reports the fight, and corrects nothing
		w.isQuietAfter(runs)
		Expect(w.data(ctx)).To(HaveKeyWithValue("a", "by hand"))
		w.keeper.Wake(w.uid, time.Time{})
		w.isQuietAfter(runs + 1)
		Expect(w.data(ctx)).To(HaveKeyWithValue("a", "by hand"))
		_, err := w.Landscaper.Trigger(ctx, w.key)
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.data).WithArguments(ctx).WithTimeout(patience).Should(HaveKeyWithValue("a", "b"))
	})
})

var _ = Describe("a goroutine of a target", func() {
	It("ends with the manager, which waits for it", func(ctx SpecContext) {
		w := newEnv(ctx)
		var ended atomic.Bool
		Expect(w.cluster.Load().Go(func(ctx context.Context) { <-ctx.Done(); ended.Store(true) })).To(BeTrue())
		Consistently(ended.Load, quiet).Should(BeFalse())
		w.Manager.Stop()
		Expect(ended.Load()).To(BeTrue())
		Expect(w.cluster.Load().Go(func(context.Context) {})).To(BeFalse())
	})
})

// SPDX-License-Identifier: Apache-2.0

package managed_test

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

var _ = Describe("Triggered background runs", func() {
	It("starts one run for several triggers at the same time", func(ctx SpecContext) {
		w := newEnv(ctx)
		soon := time.Now().Add(time.Second)
		for range 10 {
			w.manager.Trigger(w.uid, soon)
		}
		w.isQuietAfter(1)
		Expect(w.finished(ctx).Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded))
	})

	It("starts exactly one more run for triggers during a run", func(ctx SpecContext) {
		w := newEnv(ctx)
		var woken atomic.Bool
		w.setRunFunc(func(context.Context, *lsv1alpha1.DeployItem) error {
			if !woken.Swap(true) {
				w.manager.Trigger(w.uid, time.Time{})
				w.manager.Trigger(w.uid, time.Time{})
			}
			return nil
		})
		w.manager.Trigger(w.uid, time.Time{})
		w.isQuietAfter(2)
	})

	It("starts exactly one run after a job for a trigger during the job", func(ctx SpecContext) {
		w := newEnv(ctx)
		var woken atomic.Bool
		w.setRunFunc(func(context.Context, *lsv1alpha1.DeployItem) error {
			if !woken.Swap(true) {
				w.manager.Trigger(w.uid, time.Time{})
			}
			return nil
		})
		_, err := w.Landscaper.Trigger(ctx, w.key)
		Expect(err).NotTo(HaveOccurred())
		w.isQuietAfter(1)
	})

	It("starts a run at the time that the trigger contains", func(ctx SpecContext) {
		w := newEnv(ctx)
		begun := time.Now()
		w.manager.Trigger(w.uid, begun.Add(2*time.Second))
		Eventually(w.runs.Load).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(BeEquivalentTo(1))
		Expect(time.Since(begun)).To(And(BeNumerically(">=", 2*time.Second), BeNumerically("<", testtime.ScaleTimeout(10*time.Second))))
		w.isQuietAfter(1)
	})

	It("repeats a triggered run until it succeeds", func(ctx SpecContext) {
		w := newEnv(ctx)
		var failures atomic.Int32
		w.setRunFunc(func(context.Context, *lsv1alpha1.DeployItem) error {
			if failures.Add(1) <= 2 {
				return errors.New("not now")
			}
			return nil
		})
		w.manager.Trigger(w.uid, time.Time{})
		w.isQuietAfter(3)
	})

	It("delays a triggered run while an annotation of the item disables background runs", func(ctx SpecContext) {
		w := newEnv(ctx)
		Expect(w.Landscaper.SetAnnotations(ctx, w.key, map[string]string{continuousreconcile.ActiveAnnotation: "false"})).To(Succeed())
		Eventually(func() string {
			di := &lsv1alpha1.DeployItem{}
			_ = w.Manager.GetClient().Get(ctx, w.key, di)
			return di.Annotations[continuousreconcile.ActiveAnnotation]
		}).WithTimeout(patience).Should(Equal("false"))
		w.manager.Trigger(w.uid, time.Time{})
		w.isQuietAfter(0)
		Expect(w.Landscaper.SetAnnotations(ctx, w.key, map[string]string{continuousreconcile.ActiveAnnotation: "true"})).To(Succeed())
		w.isQuietAfter(1)
	})

	It("accepts a trigger in a new process as soon as this process has received the item", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.Manager.Stop()
		w.start()
		Eventually(func() int32 {
			w.manager.Trigger(w.uid, time.Time{})
			return w.runs.Load()
		}).WithTimeout(patience).Should(BeNumerically(">=", 1))
	})

	It("does not speed up the correction of a fight, unlike a job", func(ctx SpecContext) {
		w := newEnv(ctx)
		runs := w.runs.Load()
		for range 2 { // the third edit in a short time counts as a fight
			w.updateObject(ctx)
			runs++
			Eventually(w.runs.Load).WithTimeout(patience).Should(BeNumerically(">=", runs))
			Eventually(w.data).WithArguments(ctx).WithTimeout(patience).Should(HaveKeyWithValue("a", "b"))
			w.isQuietAfter(runs)
		}
		w.updateObject(ctx)
		runs++ // this run sets the condition that reports the fight, and corrects nothing
		w.isQuietAfter(runs)
		Expect(w.data(ctx)).To(HaveKeyWithValue("a", "by hand"))
		w.manager.Trigger(w.uid, time.Time{})
		w.isQuietAfter(runs + 1)
		Expect(w.data(ctx)).To(HaveKeyWithValue("a", "by hand"))
		_, err := w.Landscaper.Trigger(ctx, w.key)
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.data).WithArguments(ctx).WithTimeout(patience).Should(HaveKeyWithValue("a", "b"))
	})
})

var _ = Describe("Goroutines of a target", func() {
	It("ends the goroutine of a target before the manager stops", func(ctx SpecContext) {
		w := newEnv(ctx)
		var ended atomic.Bool
		Expect(w.cluster.Load().Go(func(ctx context.Context) { <-ctx.Done(); ended.Store(true) })).To(BeTrue())
		Consistently(ended.Load, quiet).Should(BeFalse())
		w.Manager.Stop()
		Expect(ended.Load()).To(BeTrue())
		Expect(w.cluster.Load().Go(func(context.Context) {})).To(BeFalse())
	})
})

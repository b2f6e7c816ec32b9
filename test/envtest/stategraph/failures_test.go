// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph"
)

var _ = Describe("Failing components", func() {
	It("a failed component blocks only the components that require it, and all errors are reported [Y2, Y9, Yx8, Yx9]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		broken := func(text string) stategraph.Resource {
			return stategraph.External(stategraph.ExternalSpec{Reconcile: func(context.Context) error { return errors.New(text) }})
		}
		w.start(build(stategraph.NewBuilder().
			Add("top", newConfigMap("top")).
			Add("left", broken("the left one"), "top").
			Add("right", newConfigMap("right"), "top").
			Add("bottom", newConfigMap("bottom"), "left", "right").
			Add("other", broken("the other one")).
			Add("apart", newConfigMap("apart"))))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.LastError.Message", And(
			ContainSubstring("component left: the left one"), ContainSubstring("component other: the other one"))))
		Expect(w.getStates(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]string{
			"top": "Ready", "left": "Failed", "right": "Ready", "bottom": "Blocked", "other": "Failed", "apart": "Ready",
		}))
		Expect(w.status(ctx, "item")(NewGomega(Fail)).Components).To(ContainElement(And(HaveField("Name", "bottom"), HaveField("BlockedBy", Equal([]string{"left"})))))
		Expect(w.condition(ctx, "item")(NewGomega(Fail))).To(Equal("False Failed: bottom blocked by left: the left one; other: the other one"))
		Expect(w.listExisting(ctx, "item-top", "item-right", "item-bottom", "item-apart")(NewGomega(Fail))).To(Equal([]string{"item-top", "item-right", "item-apart"}))
	}, SpecTimeout(5*time.Minute))

	It("a permanent error ends the job only when no other component makes progress any more [F38] [Yx8]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		wrong := stategraph.External(stategraph.ExternalSpec{Reconcile: func(context.Context) error {
			return deployerlib.NewConfigError("spec.config.value", "is wrong")
		}})
		w.start(build(stategraph.NewBuilder().Add("wrong", wrong).Add("slow", newSignedConfigMap("slow")).Add("behind", newConfigMap("behind"), "slow")))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.LastError.Message", ContainSubstring("spec.config.value: is wrong")))
		Expect(w.ReadItem(ctx, "item")(NewGomega(Fail)).Status.Phase).To(Equal(phases.Progressing), "the item waits, because its requirement may still become ready [F38]")
		Expect(w.condition(ctx, "item")(NewGomega(Fail))).To(HavePrefix("False Failed: wrong: spec.config.value: is wrong; "))
		w.sign(ctx, "item-slow", true)
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Phase", phases.Failed))
		Expect(w.getValue(ctx, "item-behind")(NewGomega(Fail))).To(Equal("a"))
	}, SpecTimeout(5*time.Minute))

	It("a component with an invalid object does not stop the other components [Yx8]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.start(build(stategraph.NewBuilder().
			Add("good", newConfigMap("good")).
			Add("bad", stategraph.Object(invalidConfigMap)).
			Add("behind", newConfigMap("behind"), "good")))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Phase", phases.Failed))
		Expect(w.ReadItem(ctx, "item")(NewGomega(Fail)).Status.LastError.Message).To(ContainSubstring("component bad: "))
		Expect(w.listExisting(ctx, "item-good", "item-behind")(NewGomega(Fail))).To(HaveLen(2))
		Expect(w.getStates(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]string{"good": "Ready", "behind": "Ready", "bad": "Failed"}))
	}, SpecTimeout(5*time.Minute))

	It("a failed Job of a component ends the job of the item with the reason [F38]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		migrate := stategraph.Object(func(ctx context.Context) (*batchv1.Job, error) {
			item, err := stategraph.Item(ctx)
			if err != nil {
				return nil, err
			}
			return &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: item.Name + "-migrate", Namespace: item.Namespace},
				Spec: batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(1)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "migrate", Image: "none"}},
				}}},
			}, nil
		})
		w.start(build(stategraph.NewBuilder().Add("migrate", migrate).Add("apart", newConfigMap("apart")).Add("behind", newConfigMap("behind"), "migrate")))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Phase", phases.Failed))
		Expect(w.ReadItem(ctx, "item")(NewGomega(Fail)).Status.LastError.Message).To(ContainSubstring("component migrate: Job.batch " + w.Namespace + "/item-migrate: has failed: DeadlineExceeded"))
		Expect(w.getStates(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]string{"migrate": "Failed", "apart": "Ready", "behind": "Blocked"}))
	}, SpecTimeout(5*time.Minute))

	It("a panic of a component is reported as an error of this component [Yx8]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		panics := stategraph.External(stategraph.ExternalSpec{Reconcile: func(context.Context) error { panic("at the disco") }})
		w.start(build(stategraph.NewBuilder().Add("good", newConfigMap("good")).Add("bad", panics)))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.LastError.Message", ContainSubstring("component bad: panic: at the disco")))
		Eventually(w.getValue(ctx, "item-good")).WithTimeout(patience).Should(Equal("a"))
	}, SpecTimeout(5*time.Minute))
})

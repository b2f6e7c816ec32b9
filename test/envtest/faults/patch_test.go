// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/patch"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const noted = lsv1alpha1.ConditionType("Noted")

// patchItem returns a hook that adds a condition and a label with the value that label returns to the patch of the
// current reconcile.
func patchItem(label func() string, err error) landscapertest.HookAnswer {
	return func(ctx context.Context, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
		p := patch.FromContext(ctx)
		p.Labels().Set("team", label())
		p.Append(patch.Typed(withCondition))
		return nil, err
	}
}

// withCondition adds the condition Noted to an item that does not have this condition.
func withCondition(di *lsv1alpha1.DeployItem) error {
	if contract.GetCondition(di.Status.Conditions, noted) == nil {
		di.Status.Conditions = append(di.Status.Conditions, lsv1alpha1.Condition{
			Type: noted, Status: lsv1alpha1.ConditionTrue, Reason: "Noted",
			LastTransitionTime: metav1.Unix(0, 0), LastUpdateTime: metav1.Unix(0, 0),
		})
	}
	return nil
}

func fixedLabel(s string) func() string { return func() string { return s } }

// hasPatch returns a matcher for items with the label and the condition that the hook sets.
func hasPatch(label string) OmegaMatcher {
	return And(HaveField("Labels", HaveKeyWithValue("team", label)),
		HaveField("Status.Conditions", ContainElement(HaveField("Type", noted))))
}

var _ = Describe("Patch of a call", func() {
	for _, revision := range both {
		describePatches(revision)
	}

	It("a forbidden change is rejected with its path [decision 32]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
			patch.FromContext(ctx).Spec().Set("timeout", "1h")
			return nil
		})
		w.start()
		key := w.createAndStart(ctx, "item")
		di := w.waitForError(ctx, key)
		Expect(di.Status.LastError.Message).To(And(ContainSubstring("spec.timeout"), Not(ContainSubstring("\n"))))
		Expect(di.Spec.Timeout).To(BeNil())
		Expect(di.Generation).To(Equal(int64(1)))
	}, SpecTimeout(5*time.Minute))
})

// describePatches defines the specs about patches. It is called once for each revision.
func describePatches(revision contract.Revision) {
	annotations := world.RevisionOf(revision).OperationWrites

	It(addRevision("the patch of a hook takes no request in a first job, and one in the next job if the metadata changes [K3, K4, K5]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		value, recorder := atomic.Int32{}, &landscapertest.Recorder{}
		recorder.SetHookAnswer("note", extension.AfterResponsibilityCheckHook, patchItem(func() string { return "v" + strconv.Itoa(int(value.Load())) }, nil))
		w.fake.RegisterHook(recorder.NewHook("note"), extension.AfterResponsibilityCheckHook)
		w.start()

		before := w.Counter.Snapshot()
		key := w.createBareItem(ctx, revision)
		w.finished(ctx, key)
		w.expectRequests(before, 1+1, 3)
		Expect(w.Landscaper.Get(ctx, key)).To(And(hasPatch("v0"), HaveField("Finalizers", ContainElement(lsv1alpha1.LandscaperFinalizer))))

		before = w.Counter.Snapshot()
		w.startJob(ctx, key)
		w.waitForCall(ctx, key, contract.ActionReconcile, 2)
		w.finished(ctx, key)
		w.expectRequests(before, 1+1, 2+annotations)

		value.Store(1)
		before = w.Counter.Snapshot()
		w.startJob(ctx, key)
		w.waitForCall(ctx, key, contract.ActionReconcile, 3)
		w.finished(ctx, key)
		w.expectRequests(before, 1+1, 2+1)
		Expect(w.Landscaper.Get(ctx, key)).To(hasPatch("v1"))
	}, SpecTimeout(5*time.Minute))

	It(addRevision("the patch of a deployer is sent with its outcome, and not before its end [K5, K14]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		written := 0
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			before := w.Counter.Snapshot()
			_, err := patchItem(fixedLabel("blue"), nil)(ctx, in.Item, nil)
			written = w.Counter.Snapshot().Since(before).OnlyWrites().Sum()
			return err
		})
		w.start()
		before := w.Counter.Snapshot()
		key := w.createBareItem(ctx, revision)
		Expect(w.finished(ctx, key)).To(HaveField("Status.Phase", phases.Succeeded))
		w.expectRequests(before, 1+1, 4) // the finalizer is added before the call, in a separate write
		Expect(w.Landscaper.Get(ctx, key)).To(hasPatch("blue"))
		Expect(written).To(BeZero())
	}, SpecTimeout(5*time.Minute))

	It(addRevision("the patch of a failed hook is sent with the error of the hook [K14]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		recorder := &landscapertest.Recorder{}
		recorder.SetHookAnswer("note", extension.BeforeReconcileHook, patchItem(fixedLabel("blue"), errors.New("not today")))
		w.fake.RegisterHook(recorder.NewHook("note"), extension.BeforeReconcileHook)
		w.start()
		key := w.createAndStart(ctx, "item")
		Expect(w.waitForError(ctx, key)).To(HaveField("Status.LastError.Message", ContainSubstring("not today")))
		w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Labels["team"] == "blue" })
		Expect(w.Landscaper.Get(ctx, key)).To(hasPatch("blue"))
		Expect(w.fake.ListCalls(key)).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	It(addRevision("the patch keeps the changes that the deployer makes with its own client [K10]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			mine := &lsv1alpha1.DeployItem{}
			mine.Namespace, mine.Name = in.Item.Namespace, in.Item.Name
			if err := w.Client.Patch(ctx, mine, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"own":"client"}}}`))); err != nil {
				return err
			}
			_, err := patchItem(fixedLabel("blue"), nil)(ctx, in.Item, nil)
			return err
		})
		w.start()
		key := w.createAndStart(ctx, "item")
		Expect(w.finished(ctx, key)).To(HaveField("Status.Phase", phases.Succeeded))
		di := w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Labels["team"] != "" })
		Expect(di).To(And(hasPatch("blue"), HaveField("Labels", HaveKeyWithValue("own", "client"))))
		Consistently(func() int { return len(w.fake.ListCalls(key)) }).Should(Equal(1))
	}, SpecTimeout(5*time.Minute))
}

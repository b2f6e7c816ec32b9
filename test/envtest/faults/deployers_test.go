// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// events returns the texts of the warnings about an item.
func (w *env) events(ctx context.Context, key types.NamespacedName) []string {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(w.Client.List(ctx, list, client.InNamespace(key.Namespace))).To(Succeed())
	notes := []string{}
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Name == key.Name && e.Type == "Warning" {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

var _ = Describe("Deployers with faults", func() {
	for _, revision := range both {
		It(addRevision("a panic fails only its item, and the deployer is called again [Lx10]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.Panic("boom"))
			w.args.Backoff = deployerlib.Backoff{Min: 2 * time.Second, Max: 2 * time.Second}
			w.start()
			key := w.createAndStart(ctx, "bad")
			di := w.waitForError(ctx, key)
			oneLine(di.Status.LastError.Message)
			Expect(di.Status.LastError.Message).To(ContainSubstring("boom"))
			Expect(di.Status.LastError.Message).NotTo(ContainSubstring("goroutine"))
			w.expectOthersSucceed(ctx)
			Expect(w.readMetric("deployerkit_panics_total")).To(BeEquivalentTo(1))
			Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a deployer that returns nil without a phase has succeeded", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision).start()
			Expect(w.finished(ctx, w.createAndStart(ctx, "item")).Status.Phase).To(Equal(phases.Succeeded))
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a deployer that returns a final phase and an error is called again, unless the phase is Failed [C10]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			boom := landscapertest.ReturnError(errors.New("boom"))
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.RunInOrder(landscapertest.SetPhase(phases.Succeeded), boom), landscapertest.RunInOrder(landscapertest.SetPhase(phases.Failed), boom))
			w.start()
			key := w.createAndStart(ctx, "item")
			di := w.finished(ctx, key)
			Expect(di.Status.Phase).To(Equal(phases.Failed))
			Expect(di.Status.LastError.Message).To(ContainSubstring("boom"))
			Expect(w.fake.ListCalls(key)).To(HaveLen(2))
		}, SpecTimeout(5*time.Minute))

		It(addRevision("an unknown phase fails the item with an internal problem", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.SetPhase("Dancing"))
			w.start()
			di := w.finished(ctx, w.createAndStart(ctx, "item"))
			Expect(di.Status.Phase).To(Equal(phases.Failed))
			Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorInternalProblem))
			Expect(di.Status.LastError.Message).To(ContainSubstring("Dancing"))
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a change of the spec is detected and dropped", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.fake.QueueAnswers(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
				in.Item.Spec.Context = "another"
				return nil
			})
			w.start()
			di := w.finished(ctx, w.createAndStart(ctx, "item"))
			Expect(di.Status.LastError.Message).To(ContainSubstring("spec.context"))
			Expect(di.Spec.Context).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a deployer that respects its context ends at the deadline of the item [decision 12]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
			w.start()
			key := w.createAndStart(ctx, "item", timeout(6*time.Second))
			expectTimedOut(w.finished(ctx, key))
			Expect(w.fake.ListCalls(key)).To(HaveLen(1))
			Expect(w.fake.CountCalls(key, contract.ActionAbort)).To(BeZero())
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a deployer that ignores its context is abandoned, and the worker continues [decision 11]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			release := make(chan struct{})
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockIgnoringContext(release))
			w.args.GracePeriod = moment
			w.args.Options.MaxConcurrentReconciles = 1
			w.start()
			w.expectQuarantined(ctx, w.createAndStart(ctx, "bad", timeout(5*time.Second)), release)
		}, SpecTimeout(5*time.Minute))

		It(addRevision("each new error creates one event with the unchanged message [H-38]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: time.Hour}
			const odd = "disk 100% full, %s %d %!v(MISSING)"
			first, second := landscapertest.ReturnError(errors.New(odd)), landscapertest.ReturnError(errors.New("another"))
			w.fake.QueueAnswers(contract.ActionReconcile, first, first, second)
			w.start()
			key := w.createAndStart(ctx, "item")
			di := w.waitForError(ctx, key)
			Expect(di.Status.LastError.Message).To(ContainSubstring(odd))
			Eventually(func() []string { return w.events(ctx, key) }).Should(ConsistOf(ContainSubstring(odd)))
			for n := range 2 {
				Expect(w.Landscaper.SetAnnotations(ctx, key, map[string]string{"attempt": strconv.Itoa(n)})).To(Succeed())
				w.waitForCall(ctx, key, contract.ActionReconcile, n+2)
			}
			Eventually(func() []string { return w.events(ctx, key) }).Should(ConsistOf(ContainSubstring(odd), ContainSubstring("another")))
		}, SpecTimeout(5*time.Minute))
	}

	It("a very long error message is truncated [H-32]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnError(errors.New("boom\n"+strings.Repeat("x", 1<<20))))
		w.start()
		di := w.waitForError(ctx, w.createAndStart(ctx, "item"))
		oneLine(di.Status.LastError.Message)
	}, SpecTimeout(5*time.Minute))
})

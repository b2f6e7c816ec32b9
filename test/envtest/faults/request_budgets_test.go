// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// expectRequests requires that exactly the given numbers of reads and writes were sent since the snapshot `before`. It
// also requires that no more requests follow shortly afterwards.
func (w *env) expectRequests(before faultnet.Counts, reads, writes int) {
	GinkgoHelper()
	check := func(g Gomega) {
		got := w.Counter.Snapshot().Since(before)
		g.Expect(got.OnlyReads().Sum()).To(Equal(reads), "reads in\n%s", got)
		g.Expect(got.OnlyWrites().Sum()).To(Equal(writes), "writes in\n%s", got)
	}
	Eventually(check).Should(Succeed())
	Consistently(check).Should(Succeed())
}

// createBareItem creates an item as a user does, without the finalizer that newer versions of Landscaper add, and
// requests its first run.
func (w *env) createBareItem(ctx context.Context, revision contract.Revision, change ...func(*lsv1alpha1.DeployItem)) types.NamespacedName {
	GinkgoHelper()
	if !world.RevisionOf(revision).Jobs {
		return w.createAndStart(ctx, "item", change...)
	}
	Expect(w.Client.Create(ctx, w.item("item", change...))).To(Succeed())
	w.startJob(ctx, w.Key("item"))
	return w.Key("item")
}

var _ = Describe("Requests to the API server", func() {
	for _, revision := range both {
		describeBudgets(revision)
	}

	It("an unchanged item with updateOnChangeOnly takes one write [C15]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		key := w.createAndStart(ctx, "item", func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true })
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		job := w.startJob(ctx, key)
		_, err := w.Landscaper.WaitForJob(withTimeout(ctx, patience), key, job)
		Expect(err).NotTo(HaveOccurred())
		w.expectRequests(before, 0, 1)
		Expect(w.fake.ListCalls(key)).To(HaveLen(1))
	}, SpecTimeout(5*time.Minute))

	It("a background run takes one write [L45]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		recorder := &landscapertest.Recorder{}
		w.fake.RegisterHook(recorder.NewHook("force"), extension.ShouldReconcileHook)
		w.start()
		key := w.createAndStart(ctx, "item")
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		recorder.SetHookAnswer("force", extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if w.fake.CountCalls(key, contract.ActionReconcile) > 1 {
				return nil, nil
			}
			return &extension.HookResult{}, nil
		})
		w.triggerReconcile(key)
		w.waitForCall(ctx, key, contract.ActionReconcile, 2)
		w.expectRequests(before, 0, 1)
	}, SpecTimeout(5*time.Minute))

	It("a background run without changes takes no request and creates no event", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		recorder := &landscapertest.Recorder{}
		w.fake.RegisterHook(recorder.NewHook("force"), extension.ShouldReconcileHook)
		w.start()
		key := w.createAndStart(ctx, "item")
		job := w.finished(ctx, key)
		before := w.Counter.Snapshot()
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnError(deployerlib.ErrUnchanged))
		recorder.SetHookAnswer("force", extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if w.fake.CountCalls(key, contract.ActionReconcile) > 3 {
				return nil, nil
			}
			return &extension.HookResult{}, nil
		})
		for n := 2; n <= 4; n++ {
			w.triggerReconcile(key)
			w.waitForCall(ctx, key, contract.ActionReconcile, n)
		}
		w.expectRequests(before, 0, 0)
		Expect(w.waitFor(ctx, key, func(*lsv1alpha1.DeployItem) bool { return true })).To(Equal(job))

		w.fake.SetDefaultAnswer(contract.ActionReconcile, done)
		recorder.SetHookAnswer("force", extension.ShouldReconcileHook, nil)
		before = w.Counter.Snapshot()
		next := w.startJob(ctx, key)
		_, err := w.Landscaper.WaitForJob(withTimeout(ctx, patience), key, next)
		Expect(err).NotTo(HaveOccurred())
		w.expectRequests(before, 1, 2)
	}, SpecTimeout(5*time.Minute))
})

// describeBudgets defines the specs about numbers of requests. It is called once for each revision.
func describeBudgets(revision contract.Revision) {
	// In a revision in which an annotation requests a run, each run needs another write to remove the annotation.
	annotations := world.RevisionOf(revision).OperationWrites

	It(addRevision("a first job takes three writes and a read of the Context, and its end no request [C8][F106]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision).start()
		before := w.Counter.Snapshot()
		key := w.createBareItem(ctx, revision)
		w.finished(ctx, key)
		w.expectRequests(before, 1, 3)
		before = w.Counter.Snapshot()
		Expect(w.Landscaper.SetAnnotations(ctx, key, map[string]string{"a": "b"})).To(Succeed())
		w.expectRequests(before, 0, 0)
		Expect(w.fake.ListCalls(key)).To(HaveLen(1))
	}, SpecTimeout(5*time.Minute))

	It(addRevision("an item of another type takes no request [L25, C1]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision).start()
		before := w.Counter.Snapshot()
		Expect(w.Landscaper.Deploy(ctx, w.Landscaper.Item(w.Namespace, "foreign", "example.com/foreign", config))).To(Succeed())
		Expect(w.Landscaper.SetAnnotations(ctx, w.Key("foreign"), map[string]string{"a": "b"})).To(Succeed())
		w.expectRequests(before, 0, 0)
	}, SpecTimeout(5*time.Minute))

	It(addRevision("the next job takes two writes and a read of the Context, and one more write to remove an annotation [F106]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision).start()
		key := w.createAndStart(ctx, "item")
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		w.startJob(ctx, key)
		w.waitForCall(ctx, key, contract.ActionReconcile, 2)
		w.finished(ctx, key)
		w.expectRequests(before, 1, 2+annotations)
	}, SpecTimeout(5*time.Minute))

	It(addRevision("each job takes a read of the Context, of the Target and of its Secret [F106]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		w.createTarget(ctx, "secret")
		w.start()
		before := w.Counter.Snapshot()
		key := w.createBareItem(ctx, revision, func(di *lsv1alpha1.DeployItem) {
			di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "secret", Namespace: w.Namespace}
		})
		w.finished(ctx, key)
		w.startJob(ctx, key)
		w.waitForCall(ctx, key, contract.ActionReconcile, 2)
		w.finished(ctx, key)
		w.expectRequests(before, 3+3, 3+2+annotations)
	}, SpecTimeout(5*time.Minute))

	It(addRevision("a failure takes one write if its message is new, and none otherwise [decision 1]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		w.args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: time.Hour}
		fail := func(text string) landscapertest.Answer { return landscapertest.ReturnError(errors.New(text)) }
		w.fake.QueueAnswers(contract.ActionReconcile, fail("a"), fail("b"), fail("b"), fail("c"))
		w.start()
		key := w.createAndStart(ctx, "item")
		w.waitForError(ctx, key)
		for n, writes := range []int{1, 0, 1} {
			before := w.Counter.Snapshot()
			// A trigger does not start an attempt during the backoff [F65], but a change of the item does.
			Expect(w.Landscaper.SetAnnotations(ctx, key, map[string]string{"attempt": strconv.Itoa(n)})).To(Succeed())
			w.waitForCall(ctx, key, contract.ActionReconcile, n+2)
			w.expectRequests(before, 0, writes)
		}
	}, SpecTimeout(5*time.Minute))

	It(addRevision("a deletion takes two writes and a read of the Context [C13][F106]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision).start()
		key := w.createAndStart(ctx, "item")
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		Expect(w.Landscaper.Delete(withTimeout(ctx, patience), key)).To(Succeed())
		w.expectRequests(before, 1, 2)
	}, SpecTimeout(5*time.Minute))

	It(addRevision("each conflict takes one more read and one more write", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		release := make(chan struct{})
		w.fake.QueueAnswers(contract.ActionReconcile, done, landscapertest.BlockUntil(release))
		w.start()
		key := w.createAndStart(ctx, "item")
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		w.startJob(ctx, key)
		w.waitForCall(ctx, key, contract.ActionReconcile, 2)
		Expect(w.Landscaper.SetAnnotations(ctx, key, map[string]string{"foreign": "write"})).To(Succeed())
		close(release)
		w.finished(ctx, key)
		w.expectRequests(before, 1+1, 2+annotations+1)
	}, SpecTimeout(5*time.Minute))

	It(addRevision("a job that another process started takes one additional request: an empty patch [C14]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		w.start()
		key := w.createAndStart(ctx, "item")
		w.waitForCall(ctx, key, contract.ActionReconcile, 1)
		w.Manager.Kill()
		w.Counter = &faultnet.Counter{}
		w.Config = w.Counter.Wrap(cp.Config)
		next := landscapertest.NewFake()
		w.args.Deployer = next
		w.Start(w.args)
		w.finished(ctx, key)
		Expect(next.CountCalls(key, contract.ActionReconcile)).To(Equal(1))
		Eventually(func() faultnet.Counts {
			return w.Counter.Snapshot().ForObject("deployitems", key.Namespace, key.Name).OnlyWrites()
		}).
			Should(WithTransform(faultnet.Counts.Sum, Equal(2)))
		Consistently(func() faultnet.Counts { return w.Counter.Snapshot().ForObject("deployitems", key.Namespace, key.Name) }).
			Should(WithTransform(faultnet.Counts.Sum, Equal(2)))
	}, SpecTimeout(5*time.Minute))
}

// createTarget creates a Target whose configuration is in a Secret.
func (w *env) createTarget(ctx context.Context, name string) {
	GinkgoHelper()
	secret := &corev1.Secret{StringData: map[string]string{"kubeconfig": "some text"}}
	secret.Namespace, secret.Name = w.Namespace, name
	Expect(w.Client.Create(ctx, secret)).To(Succeed())
	t := &lsv1alpha1.Target{}
	t.Namespace, t.Name = w.Namespace, name
	t.Spec.Type = lsv1alpha1.TargetType("faults.deployerkit.dev/target")
	t.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: name, Key: "kubeconfig"}
	Expect(w.Client.Create(ctx, t)).To(Succeed())
}

var _ = Describe("Waits and retries", func() {
	for _, revision := range both {
		It(addRevision("a run succeeds if the deployer returns nil after WaitFor [decision 2]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("a door", 10*time.Millisecond), landscapertest.ReturnWaitFor("a door", 10*time.Millisecond), done)
			w.start()
			di := w.finished(ctx, w.createAndStart(ctx, "item"))
			Expect(di.Status.Phase).To(Equal(phases.Succeeded))
			Expect(w.fake.ListCalls(w.Key("item"))).To(HaveLen(3))
			Expect(contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting)).To(BeNil())
		}, SpecTimeout(5*time.Minute))
	}

	It("an item whose error message changes each time is called at most 6 times in 10 s [decision 1]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		n := 0
		w.args.Options.MaxConcurrentReconciles = 1
		w.args.Backoff = deployerlib.Backoff{Min: time.Second, Max: 5 * time.Minute}
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			n++
			return fmt.Errorf("failure %d", n)
		})
		w.start()
		classic := landscapertest.NewLandscaper(w.Client, landscapertest.LandscaperOptions{Revision: contract.RevisionAnnotation})
		Expect(classic.Deploy(ctx, w.item("classic"))).To(Succeed())
		keys := []types.NamespacedName{w.createAndStart(ctx, "item"), w.Key("classic")}
		Consistently(func(g Gomega) {
			for _, key := range keys {
				g.Expect(len(w.fake.ListCalls(key))).To(BeNumerically("<=", 6), key.Name)
			}
		}, 10*time.Second, 50*time.Millisecond).Should(Succeed())
		for _, key := range keys {
			Expect(len(w.fake.ListCalls(key))).To(BeNumerically(">=", 3), "the call is retried")
			Expect(w.Counter.Snapshot().ForObject("deployitems", key.Namespace, key.Name).OnlyWrites().Sum()).To(BeNumerically("<=", 2+6))
		}
	}, SpecTimeout(5*time.Minute))
})

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

// spent requires that exactly the given numbers of reads and writes were sent since the snapshot `before`. It also
// requires that no more requests follow shortly afterwards.
func (w *env) spent(before faultnet.Counts, reads, writes int) {
	GinkgoHelper()
	check := func(g Gomega) {
		got := w.Counter.Snapshot().Since(before)
		g.Expect(got.Reads().Total()).To(Equal(reads), "reads in\n%s", got)
		g.Expect(got.Writes().Total()).To(Equal(writes), "writes in\n%s", got)
	}
	Eventually(check).Should(Succeed())
	Consistently(check).Should(Succeed())
}

// bare creates an item as a user does, without the finalizer that newer versions of Landscaper add, and requests its
// first run.
func (w *env) bare(ctx context.Context, revision contract.Revision, change ...func(*lsv1alpha1.DeployItem)) types.NamespacedName {
	GinkgoHelper()
	if !world.RevisionOf(revision).Jobs {
		return w.deploy(ctx, "item", change...)
	}
	Expect(w.Client.Create(ctx, w.item("item", change...))).To(Succeed())
	w.trigger(ctx, w.Key("item"))
	return w.Key("item")
}

var _ = Describe("Requests to the API server", func() {
	for _, revision := range both {
		perRevision(revision)
	}

	It("an unchanged item with updateOnChangeOnly takes one write [C15]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		key := w.deploy(ctx, "item", func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true })
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		job := w.trigger(ctx, key)
		_, err := w.Landscaper.AwaitJob(within(ctx, patience), key, job)
		Expect(err).NotTo(HaveOccurred())
		w.spent(before, 0, 1)
		Expect(w.fake.Calls(key)).To(HaveLen(1))
	}, SpecTimeout(5*time.Minute))

	It("a background run takes one write [L45]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		recorder := &landscapertest.Recorder{}
		w.fake.Hook(recorder.Hook("force"), extension.ShouldReconcileHook)
		w.start()
		key := w.deploy(ctx, "item")
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		recorder.On("force", extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if w.fake.Count(key, contract.ActionReconcile) > 1 {
				return nil, nil
			}
			return &extension.HookResult{}, nil
		})
		w.wake(key)
		w.calls(ctx, key, contract.ActionReconcile, 2)
		w.spent(before, 0, 1)
	}, SpecTimeout(5*time.Minute))

	It("a background run without changes takes no request and creates no event", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		recorder := &landscapertest.Recorder{}
		w.fake.Hook(recorder.Hook("force"), extension.ShouldReconcileHook)
		w.start()
		key := w.deploy(ctx, "item")
		job := w.finished(ctx, key)
		before := w.Counter.Snapshot()
		w.fake.Always(contract.ActionReconcile, landscapertest.Fail(deployerlib.ErrUnchanged))
		recorder.On("force", extension.ShouldReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			if w.fake.Count(key, contract.ActionReconcile) > 3 {
				return nil, nil
			}
			return &extension.HookResult{}, nil
		})
		for n := 2; n <= 4; n++ {
			w.wake(key)
			w.calls(ctx, key, contract.ActionReconcile, n)
		}
		w.spent(before, 0, 0)
		Expect(w.await(ctx, key, func(*lsv1alpha1.DeployItem) bool { return true })).To(Equal(job))

		w.fake.Always(contract.ActionReconcile, done)
		recorder.On("force", extension.ShouldReconcileHook, nil)
		before = w.Counter.Snapshot()
		next := w.trigger(ctx, key)
		_, err := w.Landscaper.AwaitJob(within(ctx, patience), key, next)
		Expect(err).NotTo(HaveOccurred())
		w.spent(before, 1, 2)
	}, SpecTimeout(5*time.Minute))
})

// perRevision defines the specs about numbers of requests. It is called once for each revision.
func perRevision(revision contract.Revision) {
	// In a revision in which an annotation requests a run, each run needs another write to remove the annotation.
	annotations := world.RevisionOf(revision).OperationWrites

	It(title("a first job takes three writes and a read of the Context, and its end no request [C8][F106]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision).start()
		before := w.Counter.Snapshot()
		key := w.bare(ctx, revision)
		w.finished(ctx, key)
		w.spent(before, 1, 3)
		before = w.Counter.Snapshot()
		Expect(w.Landscaper.Annotate(ctx, key, map[string]string{"a": "b"})).To(Succeed())
		w.spent(before, 0, 0)
		Expect(w.fake.Calls(key)).To(HaveLen(1))
	}, SpecTimeout(5*time.Minute))

	It(title("an item of another type takes no request [L25, C1]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision).start()
		before := w.Counter.Snapshot()
		Expect(w.Landscaper.Deploy(ctx, w.Landscaper.Item(w.Namespace, "foreign", "example.com/foreign", config))).To(Succeed())
		Expect(w.Landscaper.Annotate(ctx, w.Key("foreign"), map[string]string{"a": "b"})).To(Succeed())
		w.spent(before, 0, 0)
	}, SpecTimeout(5*time.Minute))

	It(title("the next job takes two writes and a read of the Context, and one more write to remove an annotation [F106]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision).start()
		key := w.deploy(ctx, "item")
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		w.trigger(ctx, key)
		w.calls(ctx, key, contract.ActionReconcile, 2)
		w.finished(ctx, key)
		w.spent(before, 1, 2+annotations)
	}, SpecTimeout(5*time.Minute))

	It(title("each job takes a read of the Context, of the Target and of its Secret [F106]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		w.target(ctx, "secret")
		w.start()
		before := w.Counter.Snapshot()
		key := w.bare(ctx, revision, func(di *lsv1alpha1.DeployItem) {
			di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "secret", Namespace: w.Namespace}
		})
		w.finished(ctx, key)
		w.trigger(ctx, key)
		w.calls(ctx, key, contract.ActionReconcile, 2)
		w.finished(ctx, key)
		w.spent(before, 3+3, 3+2+annotations)
	}, SpecTimeout(5*time.Minute))

	It(title("a failure takes one write if its message is new, and none otherwise [decision 1]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		w.args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: time.Hour}
		fail := func(text string) landscapertest.Answer { return landscapertest.Fail(errors.New(text)) }
		w.fake.On(contract.ActionReconcile, fail("a"), fail("b"), fail("b"), fail("c"))
		w.start()
		key := w.deploy(ctx, "item")
		w.failing(ctx, key)
		for n, writes := range []int{1, 0, 1} {
			before := w.Counter.Snapshot()
			// A trigger does not start an attempt during the backoff [F65], but a change of the item does.
			Expect(w.Landscaper.Annotate(ctx, key, map[string]string{"attempt": strconv.Itoa(n)})).To(Succeed())
			w.calls(ctx, key, contract.ActionReconcile, n+2)
			w.spent(before, 0, writes)
		}
	}, SpecTimeout(5*time.Minute))

	It(title("a deletion takes two writes and a read of the Context [C13][F106]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision).start()
		key := w.deploy(ctx, "item")
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		Expect(w.Landscaper.Delete(within(ctx, patience), key)).To(Succeed())
		w.spent(before, 1, 2)
	}, SpecTimeout(5*time.Minute))

	It(title("each conflict takes one more read and one more write", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		release := make(chan struct{})
		w.fake.On(contract.ActionReconcile, done, landscapertest.Block(release))
		w.start()
		key := w.deploy(ctx, "item")
		w.finished(ctx, key)
		before := w.Counter.Snapshot()
		w.trigger(ctx, key)
		w.calls(ctx, key, contract.ActionReconcile, 2)
		Expect(w.Landscaper.Annotate(ctx, key, map[string]string{"foreign": "write"})).To(Succeed())
		close(release)
		w.finished(ctx, key)
		w.spent(before, 1+1, 2+annotations+1)
	}, SpecTimeout(5*time.Minute))

	It(title("a job that another process started takes an empty patch more [C14]", revision), func(ctx SpecContext) {
		w := newEnv(ctx, revision)
		w.fake.On(contract.ActionReconcile, landscapertest.UntilCancelled())
		w.start()
		key := w.deploy(ctx, "item")
		w.calls(ctx, key, contract.ActionReconcile, 1)
		w.Manager.Kill()
		w.Counter = &faultnet.Counter{}
		w.Config = w.Counter.Wrap(cp.Config)
		next := landscapertest.NewFake()
		w.args.Deployer = next
		w.Start(w.args)
		w.finished(ctx, key)
		Expect(next.Count(key, contract.ActionReconcile)).To(Equal(1))
		Eventually(func() faultnet.Counts {
			return w.Counter.Snapshot().Of("deployitems", key.Namespace, key.Name).Writes()
		}).
			Should(WithTransform(faultnet.Counts.Total, Equal(2)))
		Consistently(func() faultnet.Counts { return w.Counter.Snapshot().Of("deployitems", key.Namespace, key.Name) }).
			Should(WithTransform(faultnet.Counts.Total, Equal(2)))
	}, SpecTimeout(5*time.Minute))
}

// target creates a Target whose configuration is in a Secret.
func (w *env) target(ctx context.Context, name string) {
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
		It(title("a run succeeds if the deployer returns nil after WaitFor [decision 2]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.fake.On(contract.ActionReconcile, landscapertest.Wait("a door", 10*time.Millisecond), landscapertest.Wait("a door", 10*time.Millisecond), done)
			w.start()
			di := w.finished(ctx, w.deploy(ctx, "item"))
			Expect(di.Status.Phase).To(Equal(phases.Succeeded))
			Expect(w.fake.Calls(w.Key("item"))).To(HaveLen(3))
			Expect(contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting)).To(BeNil())
		}, SpecTimeout(5*time.Minute))
	}

	It("an item whose error message changes each time is called at most 6 times in 10 s [decision 1]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		n := 0
		w.args.Options.MaxConcurrentReconciles = 1
		w.args.Backoff = deployerlib.Backoff{Min: time.Second, Max: 5 * time.Minute}
		w.fake.Always(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			n++
			return fmt.Errorf("failure %d", n)
		})
		w.start()
		classic := landscapertest.NewLandscaper(w.Client, landscapertest.LandscaperOptions{Revision: contract.RevisionAnnotation})
		Expect(classic.Deploy(ctx, w.item("classic"))).To(Succeed())
		keys := []types.NamespacedName{w.deploy(ctx, "item"), w.Key("classic")}
		Consistently(func(g Gomega) {
			for _, key := range keys {
				g.Expect(len(w.fake.Calls(key))).To(BeNumerically("<=", 6), key.Name)
			}
		}, 10*time.Second, 50*time.Millisecond).Should(Succeed())
		for _, key := range keys {
			Expect(len(w.fake.Calls(key))).To(BeNumerically(">=", 3), "the call is retried")
			Expect(w.Counter.Snapshot().Of("deployitems", key.Namespace, key.Name).Writes().Total()).To(BeNumerically("<=", 2+6))
		}
	}, SpecTimeout(5*time.Minute))
})

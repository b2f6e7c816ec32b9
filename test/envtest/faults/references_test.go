// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// withTarget returns a function that sets the Target to which an item refers.
func withTarget(name, namespace string) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) {
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: name, Namespace: namespace}
	}
}

// delayedWatches is a transport that can hold back the events of the watches of Targets and Contexts.
type delayedWatches struct {
	next http.RoundTripper
	gate sync.RWMutex // locked while the events are held back
}

func (d *delayedWatches) wrap(next http.RoundTripper) http.RoundTripper {
	d.next = next
	return d
}

// delay holds back all events from now on until the spec ends.
func (d *delayedWatches) delay() {
	d.gate.Lock()
	DeferCleanup(d.gate.Unlock)
}

// RoundTrip implements http.RoundTripper.
func (d *delayedWatches) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := d.next.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") == "true" && slices.Contains([]string{"targets", "contexts"}, path.Base(req.URL.Path)) {
		res.Body = &delayedBody{ReadCloser: res.Body, gate: &d.gate}
	}
	return res, err
}

// delayedBody is the body of a watch whose events can be held back.
type delayedBody struct {
	io.ReadCloser

	gate *sync.RWMutex
}

// Read returns the next bytes when they are not held back.
func (b *delayedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.RLock()
	defer b.gate.RUnlock()
	return n, err
}

var _ = Describe("References of an item", func() {
	for _, revision := range both {
		It(addRevision("a missing Target is reported, and the item continues when the Target is created [Lx9]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			// The backoff is so long that only the event can trigger the next reconcile.
			w.args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: time.Hour}
			w.start()
			key := w.createAndStart(ctx, "item", withTarget("late", w.Namespace))
			di := w.waitForError(ctx, key)
			oneLine(di.Status.LastError.Message)
			Expect(di.Status.LastError.Message).To(ContainSubstring(`target "late" not found`))
			Expect(contract.IsFinal(di.Status.Phase)).To(BeFalse())
			Expect(di.Status.LastReconcileTime).NotTo(BeNil(), "the job was picked up")
			Expect(w.fake.ListCalls(key)).To(BeEmpty())
			w.createTarget(ctx, "late")
			Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		}, SpecTimeout(5*time.Minute))

		It(addRevision("the next run uses the current Target, Secret and Context although the watches are delayed [F106]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			var inputs sync.Map
			w.fake.SetDefaultAnswer(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
				inputs.Store("kubeconfig", in.Target.Content)
				inputs.Store("context", in.Context.ComponentVersionOverwritesReference)
				return nil
			})
			w.createTarget(ctx, "secret")
			watches := &delayedWatches{}
			w.Config.Wrap(watches.wrap)
			w.start()
			key := w.createAndStart(ctx, "item", withTarget("secret", w.Namespace))
			w.finished(ctx, key)

			watches.delay()
			By("repairing everything, and then requesting a run")
			target := &lsv1alpha1.Target{}
			Expect(w.Client.Get(ctx, w.Key("secret"), target)).To(Succeed())
			target.Spec.SecretRef.Name = "repaired"
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "repaired"}, Data: map[string][]byte{target.Spec.SecretRef.Key: []byte("repaired")}}
			Expect(w.Client.Create(ctx, secret)).To(Succeed())
			Expect(w.Client.Update(ctx, target)).To(Succeed())
			lsCtx := &lsv1alpha1.Context{}
			Expect(w.Client.Get(ctx, w.Key(lsv1alpha1.DefaultContextName), lsCtx)).To(Succeed())
			lsCtx.ComponentVersionOverwritesReference = "repaired"
			Expect(w.Client.Update(ctx, lsCtx)).To(Succeed())
			w.startJob(ctx, key)
			w.waitForCall(ctx, key, contract.ActionReconcile, 2)
			Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
			for _, name := range []string{"kubeconfig", "context"} {
				seen, _ := inputs.Load(name)
				Expect(seen).To(Equal("repaired"), name)
			}
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a missing Context is reported, and the item continues when the Context is created", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.args.Backoff = deployerlib.Backoff{Min: time.Hour, Max: time.Hour}
			w.start()
			key := w.createAndStart(ctx, "item", func(di *lsv1alpha1.DeployItem) { di.Spec.Context = "late" })
			di := w.waitForError(ctx, key)
			oneLine(di.Status.LastError.Message)
			Expect(di.Status.LastError.Message).To(ContainSubstring(`context "late" not found`))
			lsCtx := &lsv1alpha1.Context{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "late"}}
			Expect(w.Client.Create(ctx, lsCtx)).To(Succeed())
			Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
		}, SpecTimeout(5*time.Minute))

		It(addRevision("an item that was never deployed is deleted although its Target is missing [decision 13]", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision).start()
			key := w.createAndStart(ctx, "item", withTarget("never", w.Namespace))
			w.waitForError(ctx, key)
			Expect(w.Landscaper.Delete(withTimeout(ctx, patience), key)).To(Succeed())
			Expect(w.fake.ListCalls(key)).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))

		It(addRevision("a Target in another namespace is a configuration problem", revision), func(ctx SpecContext) {
			w := newEnv(ctx, revision)
			w.createTarget(ctx, "here")
			w.start()
			key := w.createAndStart(ctx, "item", withTarget("here", "kube-system"))
			expectConfigError(w.finished(ctx, key), "spec.target.namespace")
			Expect(w.fake.ListCalls(key)).To(BeEmpty())
		}, SpecTimeout(5*time.Minute))
	}

	It("a target selector with an invalid operator is rejected at the start [D5]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.args.TargetSelectors = []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{{Key: "a", Operator: selection.Operator("resembles"), Values: []string{"b"}}}}}
		scheme, err := landscapertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		mgr, err := ctrl.NewManager(cp.Config, ctrl.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		err = deployerlib.Add(logr.Discard(), mgr, nil, w.args)
		Expect(err).To(MatchError(And(ContainSubstring("resembles"), ContainSubstring("labels[0]"))))
	}, SpecTimeout(5*time.Minute))
})

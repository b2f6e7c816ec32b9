// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// both are the revisions that most promises hold for.
var both = []contract.Revision{contract.Annotation, contract.JobID}

var (
	phases = lsv1alpha1.DeployItemPhases
	done   = landscapertest.Done()
)

// config is a configuration that the schema of the CRD takes.
const config = `{"apiVersion":"faults.deployerkit.dev/v1","kind":"Config"}`

// world is a namespace with a deployer of its own.
type world struct {
	client  client.Client
	ls      *landscapertest.Landscaper
	fake    *landscapertest.Fake
	mgr     *landscapertest.Manager
	counter *faultnet.Counter
	args    deployerlib.DeployerArgs
	ns      string
}

// newWorld makes everything but the manager, so that a spec can script the fake
// and change the arguments first.
func newWorld(ctx context.Context, revision contract.Revision) *world {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	w := &world{fake: landscapertest.NewFake(), counter: &faultnet.Counter{}}
	w.client, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{}
	ns.GenerateName = "faults-"
	Expect(w.client.Create(ctx, ns)).To(Succeed())
	w.ns = ns.Name
	w.ls = landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{Revision: revision})
	Expect(w.ls.EnsureContext(ctx, w.ns)).To(Succeed())
	w.args = deployerlib.DeployerArgs{Type: lsv1alpha1.DeployItemType("faults.deployerkit.dev/" + w.ns), Deployer: w.fake}
	return w
}

// start runs the deployer until the spec ends.
func (w *world) start() *world {
	GinkgoHelper()
	w.mgr = landscapertest.StartManager(GinkgoTB(), w.config(), w.args)
	DeferCleanup(func() { Expect(w.fake.Faults()).To(BeEmpty()) })
	return w
}

// config is an access whose requests are counted.
func (w *world) config() *rest.Config { return w.counter.Wrap(cp.Config) }

// key names an item.
func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// item makes an item in memory.
func (w *world) item(name string, change ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	di := w.ls.Item(w.ns, name, w.args.Type, config)
	for _, f := range change {
		f(di)
	}
	return di
}

// deploy creates an item and asks for its first run.
func (w *world) deploy(ctx context.Context, name string, change ...func(*lsv1alpha1.DeployItem)) types.NamespacedName {
	GinkgoHelper()
	Expect(w.ls.Deploy(ctx, w.item(name, change...))).To(Succeed())
	return w.key(name)
}

// finished waits for the end of an item's run.
func (w *world) finished(ctx context.Context, key types.NamespacedName) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di, err := w.ls.AwaitFinished(within(ctx, patience), key)
	Expect(err).NotTo(HaveOccurred())
	return di
}

// await waits until an item is as wanted.
func (w *world) await(ctx context.Context, key types.NamespacedName, ok func(*lsv1alpha1.DeployItem) bool) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di, err := w.ls.Await(within(ctx, patience), key, func(di *lsv1alpha1.DeployItem) (bool, error) { return ok(di), nil })
	Expect(err).NotTo(HaveOccurred())
	return di
}

// failing waits until an item shows an error that is not final.
func (w *world) failing(ctx context.Context, key types.NamespacedName) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	return w.await(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
}

// trigger hands out another job and returns its ID.
func (w *world) trigger(ctx context.Context, key types.NamespacedName) string {
	GinkgoHelper()
	id, err := w.ls.Trigger(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	return id
}

// calls waits until the n-th call of an action has begun.
func (w *world) calls(ctx context.Context, key types.NamespacedName, action contract.Action, n int) landscapertest.Call {
	GinkgoHelper()
	call, err := w.fake.AwaitCall(within(ctx, patience), key, action, n)
	Expect(err).NotTo(HaveOccurred())
	return call
}

// wake asks for a pass.
func (w *world) wake(key types.NamespacedName) { w.fake.Runtime().Trigger(key) }

// within bounds a context until the spec ends.
func within(ctx context.Context, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(ctx, d)
	DeferCleanup(cancel)
	return ctx
}

// timeout gives an item a deadline.
func timeout(d time.Duration) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

// title names a revision in the name of a spec.
func title(text string, revision contract.Revision) string {
	return fmt.Sprintf("%s (%s)", text, revision)
}

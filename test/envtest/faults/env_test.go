// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// both are the revisions that most promises hold for.
var both = []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID}

var (
	phases = lsv1alpha1.DeployItemPhases
	done   = landscapertest.Done()
)

// config is a configuration that the schema of the CRD takes.
const config = `{"apiVersion":"faults.deployerkit.dev/v1","kind":"Config"}`

// env is a world with a scripted deployer. The Counter counts the requests of the deployer.
type env struct {
	*world.World
	fake *landscapertest.Fake
	args deployerlib.DeployerArgs
}

// newEnv makes everything but the manager, so that a spec can script the fake
// and change the arguments first.
func newEnv(ctx context.Context, revision contract.Revision) *env {
	GinkgoHelper()
	w := &env{fake: landscapertest.NewFake(), World: world.New(ctx, GinkgoTB(), cp, world.Options{
		Name: "faults", NoTarget: true, Landscaper: landscapertest.LandscaperOptions{Revision: revision},
	})}
	w.Config = w.Counter.Wrap(cp.Config)
	w.args = deployerlib.DeployerArgs{Type: w.Type, Deployer: w.fake}
	return w
}

// start runs the deployer until the spec ends.
func (w *env) start() *env {
	GinkgoHelper()
	w.Start(w.args)
	DeferCleanup(func() { Expect(w.fake.Faults()).To(BeEmpty()) })
	return w
}

// item makes an item in memory.
func (w *env) item(name string, changes ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	return w.Item(name, config, changes...)
}

// deploy creates an item and asks for its first run.
func (w *env) deploy(ctx context.Context, name string, changes ...func(*lsv1alpha1.DeployItem)) types.NamespacedName {
	GinkgoHelper()
	w.Create(ctx, name, config, changes...)
	return w.Key(name)
}

// finished waits for the end of an item's run.
func (w *env) finished(ctx context.Context, key types.NamespacedName) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	return w.Finished(ctx, key.Name)
}

// await waits until an item is as wanted.
func (w *env) await(ctx context.Context, key types.NamespacedName, ok func(*lsv1alpha1.DeployItem) bool) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di, err := w.Landscaper.Await(within(ctx, patience), key, func(di *lsv1alpha1.DeployItem) (bool, error) { return ok(di), nil })
	Expect(err).NotTo(HaveOccurred())
	return di
}

// failing waits until an item shows an error that is not final.
func (w *env) failing(ctx context.Context, key types.NamespacedName) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	return w.await(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
}

// trigger hands out another job and returns its ID.
func (w *env) trigger(ctx context.Context, key types.NamespacedName) string {
	GinkgoHelper()
	id, err := w.Landscaper.Trigger(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	return id
}

// calls waits until the n-th call of an action has begun.
func (w *env) calls(ctx context.Context, key types.NamespacedName, action contract.Action, n int) landscapertest.Call {
	GinkgoHelper()
	call, err := w.fake.AwaitCall(within(ctx, patience), key, action, n)
	Expect(err).NotTo(HaveOccurred())
	return call
}

// wake requests a reconcile.
func (w *env) wake(key types.NamespacedName) { w.fake.Runtime().Trigger(key) }

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

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

// both contains the two revisions of the contract. Most promises hold for both revisions.
var both = []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID}

var (
	phases = lsv1alpha1.DeployItemPhases
	done   = landscapertest.ReturnNil()
)

// config is a configuration that the schema of deploy items accepts.
const config = `{"apiVersion":"faults.deployerkit.dev/v1","kind":"Config"}`

// env is the environment of a spec: a world.World with a deployer whose behaviour the spec defines. The Counter of the
// world counts the requests of the deployer.
type env struct {
	*world.World
	fake *landscapertest.Fake
	args deployerlib.DeployerArgs
}

// newEnv creates the world and the fake deployer, but does not start the manager. A spec can therefore first define the
// behavior of the fake deployer and change the arguments.
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
	DeferCleanup(func() { Expect(w.fake.OverlappingCalls()).To(BeEmpty()) })
	return w
}

// item returns an item without creating it in the cluster.
func (w *env) item(name string, changes ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	return w.Item(name, config, changes...)
}

// createAndStart creates an item and requests its first run.
func (w *env) createAndStart(ctx context.Context, name string, changes ...func(*lsv1alpha1.DeployItem)) types.NamespacedName {
	GinkgoHelper()
	w.Create(ctx, name, config, changes...)
	return w.Key(name)
}

// finished waits until the run of an item has ended.
func (w *env) finished(ctx context.Context, key types.NamespacedName) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	return w.Finished(ctx, key.Name)
}

// waitFor waits until the function `ok` returns true for an item.
func (w *env) waitFor(ctx context.Context, key types.NamespacedName, ok func(*lsv1alpha1.DeployItem) bool) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di, err := w.Landscaper.WaitFor(withTimeout(ctx, patience), key, func(di *lsv1alpha1.DeployItem) (bool, error) { return ok(di), nil })
	Expect(err).NotTo(HaveOccurred())
	return di
}

// waitForError waits until an item shows an error but its run has not ended.
func (w *env) waitForError(ctx context.Context, key types.NamespacedName) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	return w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
}

// startJob starts another job of an item and returns the ID of the job.
func (w *env) startJob(ctx context.Context, key types.NamespacedName) string {
	GinkgoHelper()
	id, err := w.Landscaper.Trigger(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	return id
}

// waitForCall waits until the n-th call of an action has begun.
func (w *env) waitForCall(ctx context.Context, key types.NamespacedName, action contract.Action, n int) landscapertest.Call {
	GinkgoHelper()
	call, err := w.fake.WaitForCall(withTimeout(ctx, patience), key, action, n)
	Expect(err).NotTo(HaveOccurred())
	return call
}

// triggerReconcile triggers a reconcile of an item.
func (w *env) triggerReconcile(key types.NamespacedName) { w.fake.Runtime().Trigger(key) }

// withTimeout returns a context with a timeout. The context is also cancelled when the spec ends.
func withTimeout(ctx context.Context, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(ctx, d)
	DeferCleanup(cancel)
	return ctx
}

// timeout returns a function that sets the timeout of an item.
func timeout(d time.Duration) func(*lsv1alpha1.DeployItem) {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

// addRevision appends the name of a revision to the title of a spec.
func addRevision(text string, revision contract.Revision) string {
	return fmt.Sprintf("%s (%s)", text, revision)
}

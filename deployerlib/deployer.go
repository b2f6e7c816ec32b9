// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/targets"
)

// Deployer acts on the deploy items of one type.
//
// The library calls at most one of the four actions per reconcile and never two at
// the same time for one item; different items run in parallel. What a call
// gets: a context that ends when the item's deadline passes, when the item is
// aborted or interrupted and when the process shuts down; the Context object
// that the item names (nil only for Abort when it is missing); the item, a
// copy of which only the status may be changed; the resolved target (nil when
// the item names none, for Abort also when it is missing).
//
// What a call returns: nil means done (status.phase left alone, or set to
// Progressing: call again after DeployerArgs.PollInterval). WaitFor means not
// done yet and no failure. ErrUnchanged means success with nothing to report: a
// background run that returns it does not write the status. Any other error lands in status.lastError and is
// retried with backoff, or ends the job at once when it carries an
// unrecoverable Landscaper error code. See docs/contract.md for every case.
type Deployer interface {
	// Reconcile brings what the item describes into being. Called at least once per job.
	Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// Delete removes it. If it returns nil, the finalizer goes and the item with it.
	Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// ForceReconcile is Reconcile for the operation annotation "force-reconcile".
	ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// Abort tidies up after a call was cancelled; the item ends Failed whatever it returns.
	// An error is retried until the abort timeout (5 minutes).
	Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// ExtensionHooks returns the hooks of this deployer; nil or empty is valid.
	// Add calls it once and copies the result: registering later has no effect.
	ExtensionHooks() extension.ReconcileExtensionHooks
}

// RuntimeUser is implemented by deployers that need clients, events or wake-ups.
type RuntimeUser interface {
	// UseRuntime is called once by Add, before the manager starts. An error makes Add fail.
	UseRuntime(rt Runtime) error
}

// Runtime is what the library lends to a deployer.
type Runtime struct {
	// Landscaper is the cluster that holds the deploy items. Its client reads from the cache.
	Landscaper cluster.Cluster
	// Host is the cluster that the deployer runs in; the Landscaper cluster when Add got no host manager.
	Host cluster.Cluster
	// Targets resolves further targets of an item's namespace.
	Targets *targets.Resolver
	// Recorder writes events about deploy items.
	Recorder events.EventRecorder
	// Clock is the library's clock.
	Clock clock.WithTickerAndDelayedExecution
	// Registerer takes metrics of the deployer's own; they get the label deployer_type.
	Registerer prometheus.Registerer
	// JudgeTargets sets the function that knows the health of targets, such as targets.Pool.Health; workers are shared
	// by it. Without one, all targets count as healthy. It must not block.
	JudgeTargets func(health func(target types.NamespacedName) targets.Health)
	// Trigger asks for another reconcile of an item, soon and at low priority.
	// It carries no reason, is de-duplicated and may be called from anywhere
	// at any time. It does not force a run on a finished item: register a
	// ShouldReconcile hook for that.
	Trigger func(item types.NamespacedName)
}

// Resumer is implemented by deployers that hold state in memory about finished
// items, such as watches on a target.
type Resumer interface {
	// Resume is called once per process and item, on the first reconcile of an
	// item that has nothing to do. It may read the target; it writes nothing,
	// and changes to di are dropped. An error is logged and retried with backoff.
	Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
}

// errForceIsReconcile is how Base asks the library to call Reconcile instead.
var errForceIsReconcile = errors.New("force-reconcile is handled by Reconcile")

// Base gives a deployer the parts that most leave alone: embed it and write
// Reconcile and Delete. ForceReconcile does what Reconcile does, Abort has
// nothing to tidy up, and there are no hooks.
type Base struct{}

// ForceReconcile makes the library call Reconcile of the embedding deployer.
func (Base) ForceReconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return errForceIsReconcile
}

// Abort does nothing: the running call was cancelled, the item ends Failed.
func (Base) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// ExtensionHooks returns none.
func (Base) ExtensionHooks() extension.ReconcileExtensionHooks { return nil }

// ErrNoCall is returned by Checkpoint outside a deployer call.
var ErrNoCall = errors.New("not in a deployer call of the library")

// Checkpoint stores what the deployer has put into the item's status so far
// (provider status, export reference, conditions), and what it noted in
// patch.FromContext, before it goes on: one write for the status and one for
// the metadata, none when nothing changed. Phase, errors and job fields are
// never written. ctx is the context of the deployer call. It must not run while
// another goroutine changes the item.
// Errors: ErrSuperseded when the job is no longer ours; a provider status that
// cannot be stored; a patch that cannot be made (it is dropped); what the API
// server says, with ERR_CONFIGURATION_PROBLEM when the item would be too large:
// returned by the deployer, that ends the run.
func Checkpoint(ctx context.Context) error {
	a := callFrom(ctx)
	if a == nil {
		return ErrNoCall
	}
	if a.inflight.Abandoned() || errors.Is(context.Cause(ctx), ErrInterrupted) {
		return ErrSuperseded
	}
	err := a.session.Checkpoint(ctx)
	if errors.Is(err, ErrSuperseded) {
		return ErrSuperseded
	}
	return err
}

// StoredPhase returns the phase that the item has in the cluster. A deployer
// call is always handed Init (Delete: InitDelete under the job-ID revision),
// whatever is stored: Init on the first call of a run, Progressing once it
// asked to be called again, and a final phase in a background run. Empty
// outside a deployer call.
func StoredPhase(ctx context.Context) lsv1alpha1.DeployItemPhase {
	if a := callFrom(ctx); a != nil {
		return a.session.Stored().Status.Phase
	}
	return ""
}

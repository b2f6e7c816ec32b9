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

// Deployer implements the actions for the deploy items of one type.
//
// The library calls at most one of the four actions per reconcile, and never two at the same time for one item.
// Different items are processed concurrently. The arguments of a call are: a context that is cancelled when the item's
// deadline passes, when the item is aborted or interrupted, and when the process shuts down; the Context object that
// the item names, which may be nil only for Abort, if it is missing; a copy of the item, of which only the status may
// be changed; and the resolved target, which is nil if the item names none, and for Abort also if it is missing.
//
// A nil error means that the action is done, or, if the call set status.phase to Progressing, that it must be called
// again after DeployerArgs.PollInterval. WaitFor means that the action is neither done nor failed. ErrUnchanged means
// success with nothing to report: a background run that returns it does not write the status. Any other error is
// written to status.lastError and the action is retried with backoff, unless the error carries an unrecoverable
// Landscaper error code, which ends the job immediately. See docs/contract.md for every case.
type Deployer interface {
	// Reconcile deploys what the item describes. It is called at least once per job.
	Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// Delete removes what was deployed. If it returns nil, the library removes the finalizer, and with it the item.
	Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// ForceReconcile replaces Reconcile if the item has the operation annotation "force-reconcile".
	ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// Abort cleans up after a call was cancelled. The item ends in phase Failed whatever Abort returns. After an error
	// it is retried until the abort timeout of 5 minutes.
	Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// ExtensionHooks returns the hooks of this deployer, which may be nil or empty. Add calls it once and copies the
	// result, so hooks that are registered later have no effect.
	ExtensionHooks() extension.ReconcileExtensionHooks
}

// RuntimeUser is implemented by deployers that need clients, events or triggers.
type RuntimeUser interface {
	// UseRuntime is called once by Add, before the manager starts. If it returns an error, Add fails.
	UseRuntime(rt Runtime) error
}

// Runtime is what the library provides to a deployer.
type Runtime struct {
	// Landscaper is the cluster with the deploy items. Its client reads from the cache.
	Landscaper cluster.Cluster
	// Host is the cluster in which the deployer runs. It is the Landscaper cluster if Add was called without a host
	// manager.
	Host cluster.Cluster
	// Targets resolves further targets of an item's namespace.
	Targets *targets.Resolver
	// Recorder records events about deploy items.
	Recorder events.EventRecorder
	// Clock is the library's clock.
	Clock clock.WithTickerAndDelayedExecution
	// Registerer registers metrics of the deployer. They get the label deployer_type.
	Registerer prometheus.Registerer
	// JudgeTargets sets the function that returns the health of targets, such as targets.Pool.Health. The library
	// divides the workers by it. Without such a function, all targets count as healthy. The function must not block.
	JudgeTargets func(health func(target types.NamespacedName) targets.Health)
	// Trigger requests another reconcile of an item, soon and at low priority. Requests for one item are merged.
	// Trigger may be called from any goroutine at any time. It does not force a run on a finished item; use a
	// ShouldReconcile hook for that.
	Trigger func(item types.NamespacedName)
}

// Resumer is implemented by deployers that keep state about finished items in memory, such as watches on a target.
type Resumer interface {
	// Resume is called once per process and item, on the first reconcile of an item that has nothing to do. It may read
	// from the target. It must not write, and changes of di are dropped. An error is logged, and Resume is retried with
	// backoff.
	Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
}

// errForceIsReconcile is returned by Base to make the library call Reconcile instead.
var errForceIsReconcile = errors.New("force-reconcile is handled by Reconcile")

// Base provides default implementations of ForceReconcile, Abort and ExtensionHooks. Embed it and implement Reconcile
// and Delete. ForceReconcile does the same as Reconcile, Abort does nothing, and there are no hooks.
type Base struct{}

// ForceReconcile makes the library call Reconcile of the embedding deployer.
func (Base) ForceReconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return errForceIsReconcile
}

// Abort does nothing and returns nil.
func (Base) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// ExtensionHooks returns nil.
func (Base) ExtensionHooks() extension.ReconcileExtensionHooks { return nil }

// ErrNoCall is returned by Checkpoint if its context is not that of a deployer call.
var ErrNoCall = errors.New("not in a deployer call of the library")

// Checkpoint stores the progress of a running call: what the deployer has put into the item's status (provider status,
// export reference, conditions) and the changes in patch.FromContext. It makes one write for the status and one for the
// metadata, and none if nothing changed. It never writes phase, errors or job fields. ctx is the context of the
// deployer call. No other goroutine may change the item during Checkpoint.
//
// Checkpoint returns ErrSuperseded if the job is no longer current, and an error if the provider status cannot be
// stored, if the patch cannot be applied (it is dropped), or if the API server refuses a write. If the item would be
// too large, the error has the code ERR_CONFIGURATION_PROBLEM; the run ends if the deployer returns it.
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

// StoredPhase returns the phase that the item has in the cluster. In the item that a deployer call receives, the phase
// is always Init (for Delete under the job-ID revision InitDelete). The stored phase is Init in the first call of a
// run, Progressing in later calls, and a final phase in a background run. StoredPhase returns "" if ctx is not that of
// a deployer call.
func StoredPhase(ctx context.Context) lsv1alpha1.DeployItemPhase {
	if a := callFrom(ctx); a != nil {
		return a.session.Stored().Status.Phase
	}
	return ""
}

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

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/internal/runningcall"
	"github.com/deployerkit/deployerkit/targets"
)

// Deployer implements the actions for the deploy items of one type.
//
// The library calls at most one of the four actions per reconcile. It never calls two actions for one item
// concurrently. Different items are processed concurrently. The arguments of a call are:
//   - a context, which is cancelled when the item's deadline passes, when the item is aborted or interrupted, and when
//     the process shuts down;
//   - the Context object that the item names; if the object does not exist, Abort receives nil, and the other actions
//     are not called;
//   - a copy of the item, of which the deployer may change only the status;
//   - the resolved target, or nil if the item names no target; if the target does not exist, Abort receives nil, and
//     the other actions are not called.
//
// A nil error means that the action is done, unless the call has set status.phase to Progressing. In that case, the
// action is called again after DeployerArgs.PollInterval. WaitFor means that the action is neither done nor failed.
// ErrUnchanged means success with nothing to report: if a background run returns ErrUnchanged, the status is not
// written. Any other error is written to status.lastError. If the error has an unrecoverable Landscaper error code, the
// job ends immediately. Otherwise, the action is retried with backoff. See docs/contract.md for every case.
type Deployer interface {
	// Reconcile deploys what the item describes. It is called at least once per job.
	Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// Delete removes everything that was deployed. If Delete returns nil, the library removes the finalizer, and the API
	// server then deletes the item.
	Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// ForceReconcile is called instead of Reconcile if the item has the operation annotation "force-reconcile".
	ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	// Abort cleans up after a call was cancelled. The item ends in phase Failed, whether Abort returns nil or an error.
	// If Abort returns an error, Abort is called again until the abort timeout of 5 minutes has passed.
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

// Runtime contains the clusters, services and functions that the library provides to a deployer.
type Runtime struct {
	// Landscaper is the cluster with the deploy items. Its client reads from the cache.
	Landscaper cluster.Cluster
	// Host is the cluster in which the deployer runs. It is the Landscaper cluster if Add was called without a host
	// manager.
	Host cluster.Cluster
	// Targets resolves targets in the namespace of an item, in addition to the target that each call receives.
	Targets *targets.Resolver
	// Recorder records events about deploy items.
	Recorder events.EventRecorder
	// Clock is the library's clock.
	Clock clock.WithTickerAndDelayedExecution
	// Registerer registers metrics of the deployer, and adds the label deployer_type to these metrics.
	Registerer prometheus.Registerer
	// SetTargetHealth sets the function that returns the health of targets, such as targets.Pool.GetHealth. The library
	// uses the health to divide the workers between the targets. Without such a function, all targets count as healthy.
	// The function must not block.
	SetTargetHealth func(health func(target types.NamespacedName) targets.Health)
	// Trigger requests another reconcile of an item, soon and at low priority. Requests for one item are merged. The
	// reconcile does not begin before the backoff of a failed item has passed, and not before DeployerArgs.MinInterval
	// has passed since the last background run. Trigger may be called from any goroutine at any time. It does not force
	// a run on a finished item; use a ShouldReconcile hook for that.
	Trigger func(item types.NamespacedName)

	// readTarget is the implementation of GetTarget. If it is nil, GetTarget uses the client of Landscaper.
	readTarget func(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.Target, error)
}

// GetTarget reads a Target other than the one that a call receives, for example one that the configuration of an item
// names. If ctx is the context of a deployer call in a run that was requested, the result is the version of the Target
// when the run was requested, or a newer one. This costs at most one read for each Target and run. In all other cases,
// GetTarget reads from the cache.
func (rt Runtime) GetTarget(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.Target, error) {
	if rt.readTarget != nil {
		return rt.readTarget(ctx, key)
	}
	target := &lsv1alpha1.Target{}
	err := rt.Landscaper.GetClient().Get(ctx, key, target)
	return target, err
}

// Resumer is implemented by deployers that keep state about finished items in memory, such as watches on a target.
type Resumer interface {
	// Resume is called once per process and item: in the first successful reconcile in which no run is due and no pause
	// holds back a run. It is not called for an item that is being deleted. It may read from the target, but must not
	// write. Changes of di are dropped. If Resume returns an error, the error is logged and Resume is retried with
	// backoff.
	Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
}

// ContextIgnorer is implemented by deployers that do not read the Context that they receive. Without this method, a run
// that Landscaper requested costs one read of the Context from the API server, because the cache may lag behind. A
// deployer that wraps such a deployer does not inherit the method.
type ContextIgnorer interface {
	// IgnoresContext is never called. Its existence means that the deployer does not read the Context.
	IgnoresContext()
}

// ContextFreeDeleter is implemented by deployers whose Delete does not need the Context. If the Context of an item does
// not exist, Delete is called without a Context (nil). Otherwise, such an item cannot be deleted. Deployers that
// implement ContextIgnorer are treated in the same way. A deployer that wraps such a deployer does not inherit the
// method.
type ContextFreeDeleter interface {
	// DeletesWithoutContext is never called. Its existence means that Delete does not need the Context.
	DeletesWithoutContext()
}

// errForceIsReconcile is returned by Base to make the library call Reconcile instead of ForceReconcile.
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

// ErrNoCall is returned by Checkpoint if its argument is not the context of a deployer call. In a unit test that calls
// a deployer without the library, landscapertest.NewUnitCall returns such a context.
var ErrNoCall = errors.New("the context does not belong to a deployer call")

// Checkpoint stores the progress of a running call: the provider status, export reference and conditions that the
// deployer has set in the item's status, and the changes recorded in patch.FromContext. It makes at most one write for
// the status and one for the metadata, and none if nothing changed. It never writes phase, errors or job fields. ctx is
// the context of the deployer call. No other goroutine may change the item during Checkpoint.
//
// Checkpoint returns ErrSuperseded if the job is no longer current. It returns another error if the provider status
// cannot be stored, if the patch cannot be applied, or if the API server refuses a write. A patch that cannot be
// applied is dropped. If the item would be too large, the error has the code ERR_CONFIGURATION_PROBLEM; the run ends if
// the deployer returns this error.
func Checkpoint(ctx context.Context) error {
	call := runningcall.From(ctx)
	if call == nil {
		return ErrNoCall
	}
	return call.Checkpoint(ctx)
}

// Checkpoint implements the function Checkpoint.
func (a *attempt) Checkpoint(ctx context.Context) error {
	if a.inflight.IsAbandoned() || errors.Is(context.Cause(ctx), ErrInterrupted) {
		return ErrSuperseded
	}
	err := a.session.StoreProgress(ctx)
	if errors.Is(err, ErrSuperseded) {
		return ErrSuperseded
	}
	return err
}

// StoredPhase returns the phase that the item has in the cluster. In the item that a deployer call receives, the phase
// is always Init, or InitDelete in a call of Delete under the job-ID revision. The stored phase is Init in the first
// call of a run, Progressing in later calls, and a final phase in a background run. StoredPhase returns "" if ctx is
// not the context of a deployer call.
func StoredPhase(ctx context.Context) lsv1alpha1.DeployItemPhase {
	if call := runningcall.From(ctx); call != nil {
		return call.StoredPhase()
	}
	return ""
}

// StoredPhase implements the function StoredPhase.
func (a *attempt) StoredPhase() lsv1alpha1.DeployItemPhase { return a.session.GetStored().Status.Phase }

// IsFirstCall reports whether nothing was deployed for the item before the deployer call to which ctx belongs. This is
// the case if the status proves it (see [contract.WasNeverDeployed]), or if the library adds the finalizer before the
// call. If a hook or the end of the process prevents the first call, IsFirstCall may return false for all calls.
func IsFirstCall(ctx context.Context) bool {
	call := runningcall.From(ctx)
	return call != nil && call.IsFirstCall()
}

// IsFirstCall implements the function IsFirstCall.
func (a *attempt) IsFirstCall() bool {
	return contract.WasNeverDeployed(a.session.GetOriginal()) || !contract.HasLandscaperFinalizer(a.session.GetOriginal())
}

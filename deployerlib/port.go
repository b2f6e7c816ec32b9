// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/internal/document"
)

// PortedDeployer is the interface of Landscaper's own deployer library since v0.53, without its hooks. It has no
// ForceReconcile.
type PortedDeployer interface {
	Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
}

// ClassicDeployer is the interface of Landscaper's own deployer library up to v0.27. Actions get the unresolved Target,
// and hooks get a logger.
type ClassicDeployer interface {
	Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error
	Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error
	ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error
	Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error
	ExtensionHooks() extension.ReconcileExtensionHooks
}

// ClassicOptions configures PortClassic.
type ClassicOptions struct {
	// FailAfter ends a run if its Landscaper errors have had the same operation for longer than this. Landscaper's
	// library ended it after 5 minutes. If FailAfter is zero, errors are retried until the deadline of the run.
	FailAfter time.Duration
}

// Port returns a Deployer that calls a deployer written for Landscaper's library since v0.53, by the rules of that
// library:
//
//   - The deployer receives the stored phase. The phase that it leaves is stored, even after an error.
//   - A Reconcile that leaves a phase of a run in progress is called again after DeployerArgs.PollInterval.
//   - A Delete that returns nil is done, whatever phase it leaves except a failed one, and whether or not it removed
//     the finalizer.
//
// The deployer must not write the status of its items with its own client. If it writes the item that it received, the
// run ends with an error that says so.
//
// The hooks are those of the deployer's method ExtensionHooks, if that returns extension.ReconcileExtensionHooks or
// PortedHooks, followed by the given hooks. The methods of RuntimeUser and Resumer are called if the deployer has them.
// The operation force-reconcile calls Reconcile. See docs/porting.md for a list of all changes.
func Port(d PortedDeployer, hooks PortedHooks) Deployer {
	if d == nil {
		return nil // Add reports it
	}
	return newPorted(&ported{
		reconcile: d.Reconcile, forceReconcile: d.Reconcile, delete: d.Delete, abort: d.Abort, deployer: d, hooks: hooks,
	})
}

// PortClassic returns a Deployer that calls a deployer written for Landscaper's library up to v0.27, by the rules of
// [Port]. If a Target gets its configuration from a Secret, the deployer receives a Target with that configuration.
func PortClassic(d ClassicDeployer, o ClassicOptions) Deployer {
	if d == nil {
		return nil
	}
	return newPorted(&ported{
		reconcile: withTarget(d.Reconcile), forceReconcile: withTarget(d.ForceReconcile), delete: withTarget(d.Delete), abort: withTarget(d.Abort),
		deployer: d, failAfter: o.FailAfter,
	})
}

// ported calls a deployer by the rules of Landscaper's library.
type ported struct {
	reconcile, forceReconcile, delete, abort action

	deployer  any
	hooks     PortedHooks // in addition to those of the deployer
	failAfter time.Duration
	clock     clock.PassiveClock
}

// resuming is a ported deployer that is a Resumer.
type resuming struct {
	*ported
	Resumer
}

// newPorted returns the deployer with the optional interfaces that it implements.
func newPorted(p *ported) Deployer {
	p.clock = clock.RealClock{}
	if r, ok := p.deployer.(Resumer); ok {
		return resuming{ported: p, Resumer: r}
	}
	return p
}

// UseRuntime passes the runtime to the deployer.
func (p *ported) UseRuntime(rt Runtime) error {
	if rt.Clock != nil {
		p.clock = rt.Clock
	}
	if user, ok := p.deployer.(RuntimeUser); ok {
		return user.UseRuntime(rt)
	}
	return nil
}

// ExtensionHooks returns the hooks of the deployer, and then those of Port.
func (p *ported) ExtensionHooks() extension.ReconcileExtensionHooks {
	var own extension.ReconcileExtensionHooks
	switch d := p.deployer.(type) {
	case interface {
		ExtensionHooks() extension.ReconcileExtensionHooks
	}:
		own = d.ExtensionHooks().DeepCopy()
	case interface{ ExtensionHooks() PortedHooks }:
		own = d.ExtensionHooks().convert()
	}
	for t, hooks := range p.hooks.convert() {
		for _, h := range hooks {
			own = own.RegisterHook(h, t)
		}
	}
	return own
}

// Reconcile calls Reconcile.
func (p *ported) Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	last := handOver(ctx, di)
	return p.takeBack(ctx, di, last, p.reconcile(ctx, lsCtx, di, target))
}

// ForceReconcile calls ForceReconcile, or Reconcile for a deployer without it.
func (p *ported) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	last := handOver(ctx, di)
	return p.takeBack(ctx, di, last, p.forceReconcile(ctx, lsCtx, di, target))
}

// Delete calls Delete. If that returns nil, the deletion is done.
func (p *ported) Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	last := handOver(ctx, di)
	err := p.delete(ctx, lsCtx, di, target)
	if err == nil && !di.Status.Phase.IsFailed() {
		di.Status.Phase = "" // means done
		return nil
	}
	return p.takeBack(ctx, di, last, err)
}

// Abort calls Abort.
func (p *ported) Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	handOver(ctx, di)
	return p.abort(ctx, lsCtx, di, target)
}

// handOver sets the phase of the run in the item, and returns the error that the item shows.
func handOver(ctx context.Context, di *lsv1alpha1.DeployItem) *lsv1alpha1.Error {
	last := di.Status.LastError.DeepCopy()
	a := callFrom(ctx)
	if a == nil {
		return last
	}
	phase := StoredPhase(ctx)
	if a.decision.Background {
		phase = backgroundPhase(a, di)
	}
	if contract.IsWorking(phase) {
		di.Status.Phase = phase
	}
	return last
}

// backgroundPhase returns the phase of a background run, which the item does not show. It is empty in the first call of
// a run.
func backgroundPhase(a *attempt, di *lsv1alpha1.DeployItem) lsv1alpha1.DeployItemPhase {
	pending := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
	switch {
	case pending == nil || pending.Status != lsv1alpha1.ConditionTrue:
		return ""
	case a.state.KeptPhase() == "" && contract.BackgroundWaits(di): // from an earlier process
		return lsv1alpha1.DeployItemPhases.Progressing
	}
	return a.state.KeptPhase()
}

// takeBack judges the result of a call by the rules of Landscaper's library. last is the error that the item showed
// before the call.
func (p *ported) takeBack(ctx context.Context, di *lsv1alpha1.DeployItem, last *lsv1alpha1.Error, err error) error {
	if a := callFrom(ctx); a != nil {
		if field := a.session.Foreign(ctx); field != "" {
			return errors.Join(&statusWrittenError{field: field}, err)
		}
		if a.decision.Background {
			a.state.KeepPhase(di.Status.Phase)
		}
	}
	if p.isLasting(last, err) {
		di.Status.Phase = lsv1alpha1.DeployItemPhases.Failed
	}
	return &keptPhase{err: err}
}

// isLasting reports whether the operation of a Landscaper error has failed for too long.
func (p *ported) isLasting(last *lsv1alpha1.Error, err error) bool {
	lsErr, ok := lserrors.IsError(err)
	if !ok || p.failAfter <= 0 || last == nil {
		return false
	}
	return last.Operation == lsErr.LandscaperError().Operation && p.clock.Since(last.LastTransitionTime.Time) > p.failAfter
}

// withTarget calls do with a Target that contains the resolved configuration.
func withTarget(do func(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) error) action {
	return func(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, resolved *lsv1alpha1.ResolvedTarget) error {
		target, err := inline(resolved)
		if err != nil {
			return err
		}
		return do(ctx, lsCtx, di, target)
	}
}

// inline returns a Target with the content of its Secret as its configuration.
func inline(resolved *lsv1alpha1.ResolvedTarget) (*lsv1alpha1.Target, error) {
	if resolved == nil || resolved.Target == nil {
		return nil, nil
	}
	target := resolved.Target.DeepCopy()
	if target.Spec.SecretRef == nil {
		return target, nil
	}
	config, err := document.ToJSON([]byte(resolved.Content))
	if err != nil {
		return nil, ConfigError("spec.target", "the content of the Secret of target %q %s", target.Name, err.Error())
	}
	target.Spec.SecretRef, target.Spec.Configuration = nil, lsv1alpha1.NewAnyJSONPointer(config)
	return target, nil
}

// PortedHook is a hook with the signature of Landscaper's current library, which has no logger.
type PortedHook func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error)

// PortedHooks maps hook types to ported hooks.
type PortedHooks map[extension.HookType][]PortedHook

// RegisterHook appends a hook to the hooks of the given types and returns the map. On a nil map it returns a new one.
func (p PortedHooks) RegisterHook(hook PortedHook, types ...extension.HookType) PortedHooks {
	if p == nil {
		p = PortedHooks{}
	}
	for _, t := range types {
		p[t] = append(slices.Clip(p[t]), hook)
	}
	return p
}

// RegisterHookSetup registers a hook that takes a logger, such as that of
// continuousreconcile.ContinuousReconcileExtensionSetup, and returns the map.
func (p PortedHooks) RegisterHookSetup(setup extension.ReconcileExtensionHookSetup) PortedHooks {
	return p.RegisterHook(withLogger(setup.Hook), setup.HookTypes...)
}

// convert returns hooks that take a logger. A nil hook stays nil, so that Validate reports it.
func (p PortedHooks) convert() extension.ReconcileExtensionHooks {
	out := extension.ReconcileExtensionHooks{}
	for t, hooks := range p {
		for _, h := range hooks {
			out[t] = append(out[t], withoutLogger(h))
		}
	}
	return out
}

func withoutLogger(h PortedHook) extension.ReconcileExtensionHook {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		return h(logr.NewContext(ctx, log), di, target, t)
	}
}

// withLogger calls a hook with the logger that withoutLogger put into the context.
func withLogger(h extension.ReconcileExtensionHook) PortedHook {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		return h(ctx, logr.FromContextOrDiscard(ctx), di, target, t)
	}
}

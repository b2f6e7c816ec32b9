// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"reflect"
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

// PortedDeployer is the Deployer interface of Landscaper's own library since v0.53, without the method for hooks. That
// interface has no ForceReconcile.
type PortedDeployer interface {
	Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
	Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error
}

// ClassicDeployer is the Deployer interface of Landscaper's own library up to v0.27. Its actions receive the unresolved
// Target, and its hooks receive a logger.
type ClassicDeployer interface {
	Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error
	Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error
	ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error
	Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error
	ExtensionHooks() extension.ReconcileExtensionHooks
}

// ClassicOptions configures PortClassic.
type ClassicOptions struct {
	// FailAfter is how long the calls of a run may return Landscaper errors with the same operation. After that time,
	// the run ends as failed. Landscaper's library ended such a run after 5 minutes. If FailAfter is zero, errors are
	// retried until the deadline of the run.
	FailAfter time.Duration
}

// Port returns a Deployer that calls d, a deployer that was written for Landscaper's own library of v0.53 or later. The
// calls follow the rules of that library:
//
//   - The deployer receives the stored phase. The phase that the deployer sets is stored, even if the deployer returns
//     an error.
//   - If Reconcile leaves the item in a phase such as Progressing, Reconcile is called again after
//     DeployerArgs.PollInterval.
//   - If Delete returns nil, the deletion is done, unless Delete has set a failed phase. It does not matter whether
//     Delete has removed the finalizer.
//
// The deployer must not write the status of its items with its own client. If the deployer writes the status of the
// item that it received, the run ends with an error that names the field.
//
// If the deployer has a method ExtensionHooks that returns extension.ReconcileExtensionHooks or PortedHooks, the
// library calls these hooks first. It calls the given hooks afterwards. If the deployer implements RuntimeUser or
// Resumer, the library calls the methods of these interfaces. The operation force-reconcile calls Reconcile. See
// docs/porting.md for a list of all changes.
func Port(d PortedDeployer, hooks PortedHooks) Deployer {
	if d == nil {
		return nil // Add reports that the deployer is missing
	}
	return newPorted(&ported{
		reconcile: d.Reconcile, forceReconcile: d.Reconcile, delete: d.Delete, abort: d.Abort, deployer: d, hooks: hooks,
	})
}

// PortClassic returns a Deployer that calls d, a deployer that was written for Landscaper's own library up to v0.27.
// The calls follow the rules of [Port]. If a Target gets its configuration from a Secret, the deployer receives a
// Target that contains this configuration.
func PortClassic(d ClassicDeployer, o ClassicOptions) Deployer {
	if d == nil {
		return nil
	}
	return newPorted(&ported{
		reconcile: withTarget(d.Reconcile), forceReconcile: withTarget(d.ForceReconcile), delete: withTarget(d.Delete), abort: withTarget(d.Abort),
		deployer: d, failAfter: o.FailAfter,
	})
}

// ported is a Deployer that calls another deployer according to the rules of Landscaper's library.
type ported struct {
	reconcile, forceReconcile, delete, abort action

	deployer  any
	hooks     PortedHooks // the hooks that were passed to Port
	failAfter time.Duration
	clock     clock.PassiveClock
}

// portedResumer is a ported deployer that is a Resumer.
type portedResumer struct {
	*ported
	Resumer
}

// newPorted returns p as a Deployer. The result implements Resumer only if the ported deployer implements Resumer.
func newPorted(p *ported) Deployer {
	p.clock = clock.RealClock{}
	if r, ok := p.deployer.(Resumer); ok {
		return portedResumer{ported: p, Resumer: r}
	}
	return p
}

// UseRuntime passes the runtime to the ported deployer if the ported deployer implements RuntimeUser.
func (p *ported) UseRuntime(rt Runtime) error {
	if rt.Clock != nil {
		p.clock = rt.Clock
	}
	if user, ok := p.deployer.(RuntimeUser); ok {
		return user.UseRuntime(rt)
	}
	return nil
}

// ExtensionHooks returns the hooks of the ported deployer, followed by the hooks that were passed to Port.
func (p *ported) ExtensionHooks() extension.ReconcileExtensionHooks {
	var own extension.ReconcileExtensionHooks
	switch d := p.deployer.(type) {
	case interface {
		ExtensionHooks() extension.ReconcileExtensionHooks
	}:
		own = d.ExtensionHooks().DeepCopy()
	case interface{ ExtensionHooks() PortedHooks }:
		own = d.ExtensionHooks().toHooks()
	}
	for t, hooks := range p.hooks.toHooks() {
		for _, h := range hooks {
			own = own.RegisterHook(h, t)
		}
	}
	return own
}

// describeUncalledMethods returns a sentence for each method of the ported deployer that the library never calls,
// although Landscaper's library of another version calls a method with this name.
func (p *ported) describeUncalledMethods() []string {
	var out []string
	if _, classic := p.deployer.(ClassicDeployer); !classic && hasMethod(p.deployer, "ForceReconcile") {
		out = append(out, "ForceReconcile of the ported deployer is never called, because Port calls Reconcile instead: remove the method, or implement Deployer without Port")
	}
	_, own := p.deployer.(interface {
		ExtensionHooks() extension.ReconcileExtensionHooks
	})
	_, without := p.deployer.(interface{ ExtensionHooks() PortedHooks })
	if !own && !without && hasMethod(p.deployer, "ExtensionHooks") {
		out = append(out, "ExtensionHooks of the ported deployer is never called, because it returns neither extension.ReconcileExtensionHooks nor deployerlib.PortedHooks")
	}
	return out
}

// hasMethod reports whether a deployer has a method with the given name.
func hasMethod(deployer any, name string) bool {
	return reflect.ValueOf(deployer).MethodByName(name).IsValid()
}

// Reconcile calls Reconcile of the ported deployer.
func (p *ported) Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	last := setExpectedPhase(ctx, di)
	return p.convertResult(ctx, di, last, p.reconcile(ctx, lsCtx, di, target))
}

// ForceReconcile calls ForceReconcile of the ported deployer, or Reconcile if there is no ForceReconcile.
func (p *ported) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	last := setExpectedPhase(ctx, di)
	return p.convertResult(ctx, di, last, p.forceReconcile(ctx, lsCtx, di, target))
}

// Delete calls Delete of the ported deployer. If that call returns nil and sets no failed phase, the deletion is done.
func (p *ported) Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	last := setExpectedPhase(ctx, di)
	err := p.delete(ctx, lsCtx, di, target)
	if err == nil && !di.Status.Phase.IsFailed() {
		di.Status.Phase = "" // an empty phase means that the deletion is done
		return nil
	}
	return p.convertResult(ctx, di, last, err)
}

// Abort calls Abort of the ported deployer.
func (p *ported) Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	setExpectedPhase(ctx, di)
	return p.abort(ctx, lsCtx, di, target)
}

// setExpectedPhase sets the phase of di to the phase that the ported deployer expects, and returns the lastError of di.
func setExpectedPhase(ctx context.Context, di *lsv1alpha1.DeployItem) *lsv1alpha1.Error {
	last := di.Status.LastError.DeepCopy()
	a := getRunningAttempt(ctx)
	if a == nil {
		return last
	}
	phase := StoredPhase(ctx)
	if a.getDecision().Background {
		phase = getBackgroundPhase(a, di)
	}
	if contract.IsInProgress(phase) {
		di.Status.Phase = phase
	}
	return last
}

// getBackgroundPhase returns the phase that the deployer set in the previous call of a background run. The status of
// the item does not contain this phase. In the first call of a run, the phase is empty.
func getBackgroundPhase(a *attempt, di *lsv1alpha1.DeployItem) lsv1alpha1.DeployItemPhase {
	pending := contract.GetCondition(di.Status.Conditions, contract.ConditionBackground)
	switch {
	case pending == nil || pending.Status != lsv1alpha1.ConditionTrue:
		return ""
	case a.state.GetKeptPhase() == "" && contract.IsBackgroundWaiting(di): // an earlier process made the last call
		return lsv1alpha1.DeployItemPhases.Progressing
	}
	return a.state.GetKeptPhase()
}

// convertResult judges the result of a call according to the rules of Landscaper's library. The parameter `last` is the
// error that the item showed before the call.
func (p *ported) convertResult(ctx context.Context, di *lsv1alpha1.DeployItem, last *lsv1alpha1.Error, err error) error {
	if a := getRunningAttempt(ctx); a != nil {
		if field := a.session.FindForeignChange(ctx); field != "" {
			return errors.Join(&statusWrittenError{field: field}, err)
		}
		if a.getDecision().Background {
			a.state.KeepPhase(di.Status.Phase)
		}
	}
	if p.isLasting(last, err) {
		di.Status.Phase = lsv1alpha1.DeployItemPhases.Failed
	}
	return &keepPhaseError{err: err}
}

// isLasting reports whether err is a Landscaper error whose operation has failed for longer than p.failAfter.
func (p *ported) isLasting(last *lsv1alpha1.Error, err error) bool {
	lsErr, ok := lserrors.IsError(err)
	if !ok || p.failAfter <= 0 || last == nil {
		return false
	}
	return last.Operation == lsErr.LandscaperError().Operation && p.clock.Since(last.LastTransitionTime.Time) > p.failAfter
}

// withTarget returns an action that resolves the configuration of the Target and then calls the function `do`.
func withTarget(do func(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) error) action {
	return func(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, resolved *lsv1alpha1.ResolvedTarget) error {
		target, err := resolveSecret(resolved)
		if err != nil {
			return err
		}
		return do(ctx, lsCtx, di, target)
	}
}

// resolveSecret returns a copy of the Target. If the Target refers to a Secret, the copy contains the content of this
// Secret as its configuration.
func resolveSecret(resolved *lsv1alpha1.ResolvedTarget) (*lsv1alpha1.Target, error) {
	if resolved == nil || resolved.Target == nil {
		return nil, nil
	}
	target := resolved.Target.DeepCopy()
	if target.Spec.SecretRef == nil {
		return target, nil
	}
	config, err := document.ToJSON([]byte(resolved.Content))
	if err != nil {
		return nil, NewConfigError("spec.target", "the Secret of target %q is not usable, because its content %s", target.Name, err.Error())
	}
	target.Spec.SecretRef, target.Spec.Configuration = nil, lsv1alpha1.NewAnyJSONPointer(config)
	return target, nil
}

// PortedHook is a hook with the signature of Landscaper's current library, which has no logger.
type PortedHook func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error)

// PortedHooks maps hook types to ported hooks.
type PortedHooks map[extension.HookType][]PortedHook

// RegisterHook appends a hook to the hooks of the given types and returns the map. If the map is nil, RegisterHook
// returns a new map.
func (p PortedHooks) RegisterHook(hook PortedHook, types ...extension.HookType) PortedHooks {
	if p == nil {
		p = PortedHooks{}
	}
	for _, t := range types {
		p[t] = append(slices.Clip(p[t]), hook)
	}
	return p
}

// RegisterHookSetup registers a hook that takes a logger, such as the hook of
// continuousreconcile.ContinuousReconcileExtensionSetup, and returns the map.
func (p PortedHooks) RegisterHookSetup(setup extension.ReconcileExtensionHookSetup) PortedHooks {
	return p.RegisterHook(withLogger(setup.Hook), setup.HookTypes...)
}

// toHooks returns hooks that take a logger. A nil hook stays nil, so that Validate reports it.
func (p PortedHooks) toHooks() extension.ReconcileExtensionHooks {
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

// withLogger returns a hook that calls h with the logger that withoutLogger stored in the context.
func withLogger(h extension.ReconcileExtensionHook) PortedHook {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		return h(ctx, logr.FromContextOrDiscard(ctx), di, target, t)
	}
}

// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// verdict determines how an attempt continues after a phase.
type verdict int

const (
	verdictProceed verdict = iota // run the next phase
	verdictStop                   // end the attempt and keep the requeue that hooks requested
	verdictDrop                   // end the attempt and drop the requeue, because the item does not exist or belongs to another deployer
)

// String returns the name of the verdict for traces.
func (v verdict) String() string { return [...]string{"proceed", "stop", "drop"}[v] }

// phase is one step of the pipeline. First, the hooks of the types in the field `beforeHooks` run, and may stop the
// attempt. Second, the function in the field `do` returns the default verdict. Third, the hooks of the field `override`
// run, and may change the verdict. If the verdict is verdictProceed, the function in the field `onProceed` is called
// last.
type phase struct {
	name        string
	isNeeded    func(*attempt) bool // if it is set and returns false, the phase is skipped
	beforeHooks []extension.HookType
	do          func(context.Context, *attempt) (verdict, error)
	override    *override
	onProceed   func(*attempt)
}

// override lets the hooks of one type change a verdict.
type override struct {
	hook    extension.HookType
	rule    func(byDefault verdict, res *extension.HookResult) verdict
	onForce func(context.Context, *attempt) (verdict, error) // called if the hooks change the verdict from verdictStop to verdictProceed
}

// hookTypes returns its arguments as a slice.
func hookTypes(types ...extension.HookType) []extension.HookType { return types }

// replaceVerdict returns the verdict that the hooks request with their result. If there is no result, it returns
// byDefault.
func replaceVerdict(byDefault verdict, res *extension.HookResult) verdict {
	switch {
	case res == nil:
		return byDefault
	case res.AbortReconcile:
		return verdictStop
	}
	return verdictProceed
}

// allowForce returns verdictProceed if the result of the hooks requests it. Otherwise, it returns the parameter
// `byDefault`. Hooks can therefore change the verdict from verdictStop to verdictProceed, but not
// from verdictProceed to verdictStop.
func allowForce(byDefault verdict, res *extension.HookResult) verdict {
	if res != nil && !res.AbortReconcile {
		return verdictProceed
	}
	return byDefault
}

// phaseRunner runs phases and hooks.
type phaseRunner struct {
	hooks     extension.ReconcileExtensionHooks
	telemetry *telemetry
}

// hasHooks reports whether there are hooks of a type.
func (w *phaseRunner) hasHooks(t extension.HookType) bool { return len(w.hooks[t]) > 0 }

// runPhases runs the phases in order. It stops after a phase whose verdict is not verdictProceed, or when the attempt
// is cancelled before the deployer was called.
func (w *phaseRunner) runPhases(ctx context.Context, a *attempt, phases []phase) (verdict, error) {
	for i := range phases {
		if a.call.outcome == nil && context.Cause(ctx) != nil {
			return verdictStop, nil
		}
		if phases[i].isNeeded != nil && !phases[i].isNeeded(a) {
			continue
		}
		v, err := w.runPhase(ctx, a, &phases[i])
		if err != nil || v != verdictProceed {
			return v, err
		}
	}
	return verdictProceed, nil
}

// runPhase runs and reports one phase.
func (w *phaseRunner) runPhase(ctx context.Context, a *attempt, p *phase) (verdict, error) {
	ctx, end := w.telemetry.observePhase(ctx, a, p.name)
	v, err := w.step(ctx, a, p)
	if _, after, waits := AsWait(err); waits { // only hooks return such an error; the error of an action is judged where the action is called
		a.hooks.wait = &hookWait{message: err.Error(), after: after}
		v, err = verdictStop, nil
	}
	if err != nil {
		v, err = verdictStop, wrapWithPhase(p.name, err)
	}
	if v == verdictProceed && p.onProceed != nil {
		p.onProceed(a)
	}
	end(v, err)
	return v, err
}

// wrapWithPhase adds the name of the phase to an error unless the error already contains the name of a phase.
func wrapWithPhase(name string, err error) error {
	if _, nested := err.(*phaseError); nested { //nolint:errorlint // only the outermost matters
		return err
	}
	return &phaseError{phase: name, err: err}
}

// phaseError is an error with the name of the phase in which it occurred.
type phaseError struct {
	phase string
	err   error
}

func (e *phaseError) Error() string { return fmt.Sprintf("%s: %v", e.phase, e.err) }
func (e *phaseError) Unwrap() error { return e.err }

// step runs a phase: the hooks of the types in the field `beforeHooks`, then the function in the field `do`, and then
// the hooks of the field `override`.
func (w *phaseRunner) step(ctx context.Context, a *attempt, p *phase) (verdict, error) {
	for _, t := range p.beforeHooks {
		res, err := w.runHooks(ctx, a, t)
		if err != nil {
			return verdictStop, err
		}
		a.hooks.merge(res)
		if res != nil && res.AbortReconcile && t != extension.EndHook {
			a.hooks.stopMessage = describeStop(a.hooks.aborts)
			return verdictStop, nil
		}
	}
	v := verdictProceed
	if p.do != nil {
		var err error
		if v, err = p.do(ctx, a); err != nil || v == verdictDrop {
			return v, err
		}
	}
	if p.override != nil {
		return w.applyOverride(ctx, a, p.override, v)
	}
	return v, nil
}

// applyOverride calls the hooks of an override.
func (w *phaseRunner) applyOverride(ctx context.Context, a *attempt, o *override, byDefault verdict) (verdict, error) {
	res, err := w.runHooks(ctx, a, o.hook)
	if err != nil {
		return verdictStop, err
	}
	a.hooks.merge(res)
	v := o.rule(byDefault, res)
	if byDefault == verdictStop && v == verdictProceed && o.onForce != nil {
		return o.onForce(ctx, a)
	}
	return v, nil
}

// runHooks runs the hooks of one type. Before the deployer is known to be responsible, hooks receive a copy of the
// item, and changes of the copy are dropped. Afterwards, hooks may change the status.
func (w *phaseRunner) runHooks(ctx context.Context, a *attempt, t extension.HookType) (*extension.HookResult, error) {
	if !w.hasHooks(t) {
		return nil, nil
	}
	a.hooks.aborts = nil
	ctx = w.telemetry.withHookObserver(ctx, a.key, a.hooks.recordAbort)
	if a.session == nil {
		return w.executeHooks(ctx, a, nil, t)
	}
	if !a.responsible {
		return w.executeHooks(ctx, a, a.session.GetOriginal().DeepCopy(), t)
	}
	ctx, item := a.session.GetUserCopy(ctx)
	phase, lastError := item.Status.Phase, item.Status.LastError
	res, err := w.executeHooks(ctx, a, item, t)
	item.Status.Phase, item.Status.LastError = phase, lastError
	if faulty := a.session.ResetProtected(ctx, a.log, "a "+string(t)+" hook"); faulty != nil && err == nil {
		res, err = nil, faulty
	}
	return res, err
}

// executeHooks calls the hooks of a type.
func (w *phaseRunner) executeHooks(ctx context.Context, a *attempt, item *lsv1alpha1.DeployItem, t extension.HookType) (*extension.HookResult, error) {
	res, err := w.hooks.ExecuteHooks(ctx, a.log, item, a.target.object, t)
	if err != nil {
		return nil, &hookError{err}
	}
	return res, nil
}

// hookError is the error of a hook, with the type and the name of the hook.
type hookError struct{ err error }

func (e *hookError) Error() string { return e.err.Error() }
func (e *hookError) Unwrap() error { return e.err }

// getVisibleError returns the error to show in the status of an item. This is usually err itself. If a hook returned an
// unrecoverable error, such as an error of NewConfigError, the item itself is wrong. In this case, getVisibleError
// returns only the error of the hook, without the names of the phase and the hook, which would hide the field that must
// be corrected.
func getVisibleError(err error) error {
	hook, ok := errors.AsType[*hookError](err)
	if !ok || !contract.HasUnrecoverableCode(contract.ErrorCodes(err)) {
		return err
	}
	return cmp.Or(errors.Unwrap(hook.err), err)
}

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
	proceed verdict = iota // run the next phase
	stop                   // end the attempt and keep the requeue that hooks requested
	drop                   // end the attempt and drop the requeue, because the item does not exist or belongs to another deployer
)

// String returns the name of the verdict for traces.
func (v verdict) String() string { return [...]string{"proceed", "stop", "drop"}[v] }

// phase is one step of the pipeline. First, the hooks of the types in the field `gates` run, and may stop the attempt.
// Second, the function in the field `do` returns the default verdict. Third, the hooks of the field `override` run, and
// may change the verdict. If the verdict is `proceed`, the function in the field `then` is called last.
type phase struct {
	name     string
	only     func(*attempt) bool // if it is set and returns false, the phase is skipped
	gates    []extension.HookType
	do       func(context.Context, *attempt) (verdict, error)
	override *override
	then     func(*attempt)
}

// override lets the hooks of one type change a verdict.
type override struct {
	hook    extension.HookType
	rule    func(byDefault verdict, res *extension.HookResult) verdict
	onForce func(context.Context, *attempt) (verdict, error) // called if the hooks change the verdict from `stop` to `proceed`
}

// The function `at` returns its arguments as a slice.
func at(types ...extension.HookType) []extension.HookType { return types }

// replace returns the verdict that the hooks request with their result. If there is no result, it returns byDefault.
func replace(byDefault verdict, res *extension.HookResult) verdict {
	switch {
	case res == nil:
		return byDefault
	case res.AbortReconcile:
		return stop
	}
	return proceed
}

// forceOnly returns the verdict `proceed` if the result of the hooks requests it. Otherwise, it returns the parameter
// `byDefault`. Hooks can therefore change the verdict from `stop` to `proceed`, but not from `proceed` to `stop`.
func forceOnly(byDefault verdict, res *extension.HookResult) verdict {
	if res != nil && !res.AbortReconcile {
		return proceed
	}
	return byDefault
}

// walker runs phases and hooks.
type walker struct {
	hooks     extension.ReconcileExtensionHooks
	telemetry *telemetry
}

// The method `has` reports whether there are hooks of a type.
func (w *walker) has(t extension.HookType) bool { return len(w.hooks[t]) > 0 }

// walk runs the phases in order. It stops after a phase whose verdict is not `proceed`, or when the attempt is
// cancelled before the deployer was called.
func (w *walker) walk(ctx context.Context, a *attempt, phases []phase) (verdict, error) {
	for i := range phases {
		if a.call.outcome == nil && context.Cause(ctx) != nil {
			return stop, nil
		}
		if phases[i].only != nil && !phases[i].only(a) {
			continue
		}
		v, err := w.runPhase(ctx, a, &phases[i])
		if err != nil || v != proceed {
			return v, err
		}
	}
	return proceed, nil
}

// runPhase runs and reports one phase.
func (w *walker) runPhase(ctx context.Context, a *attempt, p *phase) (verdict, error) {
	ctx, end := w.telemetry.phase(ctx, a, p.name)
	v, err := w.step(ctx, a, p)
	if _, after, waits := AsWait(err); waits { // only hooks return such an error; the error of an action is judged where the action is called
		a.pause = &pause{message: err.Error(), after: after}
		v, err = stop, nil
	}
	if err != nil {
		v, err = stop, inPhase(p.name, err)
	}
	if v == proceed && p.then != nil {
		p.then(a)
	}
	end(v, err)
	return v, err
}

// inPhase adds the name of the phase to an error unless the error already contains the name of a phase.
func inPhase(name string, err error) error {
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

// step runs a phase: the hooks of the types in the field `gates`, then the function in the field `do`, and then the
// hooks of the field `override`.
func (w *walker) step(ctx context.Context, a *attempt, p *phase) (verdict, error) {
	for _, t := range p.gates {
		res, err := w.runHooks(ctx, a, t)
		if err != nil {
			return stop, err
		}
		a.merge(res)
		if res != nil && res.AbortReconcile && t != extension.EndHook {
			a.stopped = stoppedBy(a.aborts)
			return stop, nil
		}
	}
	v := proceed
	if p.do != nil {
		var err error
		if v, err = p.do(ctx, a); err != nil || v == drop {
			return v, err
		}
	}
	if p.override != nil {
		return w.applyOverride(ctx, a, p.override, v)
	}
	return v, nil
}

// applyOverride calls the hooks of an override.
func (w *walker) applyOverride(ctx context.Context, a *attempt, o *override, byDefault verdict) (verdict, error) {
	res, err := w.runHooks(ctx, a, o.hook)
	if err != nil {
		return stop, err
	}
	a.merge(res)
	v := o.rule(byDefault, res)
	if byDefault == stop && v == proceed && o.onForce != nil {
		return o.onForce(ctx, a)
	}
	return v, nil
}

// runHooks runs the hooks of one type. Before the deployer is known to be responsible, hooks receive a copy of the
// item, and changes of the copy are dropped. Afterwards, hooks may change the status.
func (w *walker) runHooks(ctx context.Context, a *attempt, t extension.HookType) (*extension.HookResult, error) {
	if !w.has(t) {
		return nil, nil
	}
	a.aborts = nil
	ctx = w.telemetry.hooks(ctx, a.key, a.note)
	if a.session == nil {
		return w.execute(ctx, a, nil, t)
	}
	if !a.responsible {
		return w.execute(ctx, a, a.session.Read().DeepCopy(), t)
	}
	ctx, item := a.session.UserCopy(ctx)
	phase, lastError := item.Status.Phase, item.Status.LastError
	res, err := w.execute(ctx, a, item, t)
	item.Status.Phase, item.Status.LastError = phase, lastError
	if faulty := a.session.Restore(ctx, a.log, "a "+string(t)+" hook"); faulty != nil && err == nil {
		res, err = nil, faulty
	}
	return res, err
}

// execute calls the hooks of a type.
func (w *walker) execute(ctx context.Context, a *attempt, item *lsv1alpha1.DeployItem, t extension.HookType) (*extension.HookResult, error) {
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

// shownError returns the error to show in the status of an item. This is usually err itself. If a hook returned an
// unrecoverable error, such as a ConfigError, the item itself is wrong. In this case, shownError returns only the error
// of the hook, without the names of the phase and the hook, which would hide the field that must be corrected.
func shownError(err error) error {
	hook, ok := errors.AsType[*hookError](err)
	if !ok || !contract.Unrecoverable(contract.Codes(err)) {
		return err
	}
	return cmp.Or(errors.Unwrap(hook.err), err)
}

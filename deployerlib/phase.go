// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"

	"github.com/deployerkit/deployerkit/extension"
)

// verdict is how a phase ends.
type verdict int

const (
	proceed verdict = iota // run the next phase
	stop                   // end the pass, keep the requeue that hooks asked for
	drop                   // end the pass and forget what hooks asked for: item gone or not ours at all
)

// String names the verdict for traces.
func (v verdict) String() string { return [...]string{"proceed", "stop", "drop"}[v] }

// phase is one named step: gates may stop the pass, do gives the default
// verdict, override may change it, then notes that the pass proceeds.
type phase struct {
	name     string
	only     func(*cycle) bool // nil: always; else passes without it skip the phase
	gates    []extension.HookType
	do       func(context.Context, *cycle) (verdict, error)
	override *override
	then     func(*cycle)
}

// override lets the hooks of one type change a verdict.
type override struct {
	hook    extension.HookType
	rule    func(byDefault verdict, res *extension.HookResult) verdict
	onForce func(context.Context, *cycle) (verdict, error) // stop became proceed
}

// at lists the hook types of a phase's gates.
func at(types ...extension.HookType) []extension.HookType { return types }

// replace: a result decides, whatever the default was.
func replace(byDefault verdict, res *extension.HookResult) verdict {
	switch {
	case res == nil:
		return byDefault
	case res.AbortReconcile:
		return stop
	}
	return proceed
}

// forceOnly: a result may turn stop into proceed, never the other way round.
func forceOnly(byDefault verdict, res *extension.HookResult) verdict {
	if res != nil && !res.AbortReconcile {
		return proceed
	}
	return byDefault
}

// runPhases walks the phases until one does not proceed.
func (r *reconciler) runPhases(ctx context.Context, c *cycle, phases []phase) (verdict, error) {
	for i := range phases {
		if c.outcome == nil && context.Cause(ctx) != nil {
			c.cause = context.Cause(ctx)
			return stop, nil
		}
		if phases[i].only != nil && !phases[i].only(c) {
			continue
		}
		v, err := r.runPhase(ctx, c, &phases[i])
		if err != nil || v != proceed {
			return v, err
		}
	}
	return proceed, nil
}

// runPhase runs one phase and reports it.
func (r *reconciler) runPhase(ctx context.Context, c *cycle, p *phase) (verdict, error) {
	ctx, end := r.seen.phase(ctx, c, p.name)
	v, err := r.step(ctx, c, p)
	if err != nil {
		v, err = stop, inPhase(p.name, err)
	}
	if v == proceed && p.then != nil {
		p.then(c)
	}
	end(v, err)
	return v, err
}

// inPhase names the phase that an error comes from, unless the error went through a phase already.
func inPhase(name string, err error) error {
	if _, nested := err.(*phaseError); nested { //nolint:errorlint // only the outermost matters
		return err
	}
	return &phaseError{phase: name, err: err}
}

// phaseError is an error with the phase it happened in.
type phaseError struct {
	phase string
	err   error
}

func (e *phaseError) Error() string { return fmt.Sprintf("%s: %v", e.phase, e.err) }
func (e *phaseError) Unwrap() error { return e.err }

// step runs gates, do and override of a phase.
func (r *reconciler) step(ctx context.Context, c *cycle, p *phase) (verdict, error) {
	for _, t := range p.gates {
		res, err := r.runHooks(ctx, c, t)
		if err != nil {
			return stop, err
		}
		c.merge(res)
		if res != nil && res.AbortReconcile && t != extension.EndHook {
			return stop, nil
		}
	}
	v := proceed
	if p.do != nil {
		var err error
		if v, err = p.do(ctx, c); err != nil || v == drop {
			return v, err
		}
	}
	if p.override != nil {
		return r.applyOverride(ctx, c, p.override, v)
	}
	return v, nil
}

// applyOverride asks the hooks of an override.
func (r *reconciler) applyOverride(ctx context.Context, c *cycle, o *override, byDefault verdict) (verdict, error) {
	res, err := r.runHooks(ctx, c, o.hook)
	if err != nil {
		return stop, err
	}
	c.merge(res)
	v := o.rule(byDefault, res)
	if byDefault == stop && v == proceed && o.onForce != nil {
		return o.onForce(ctx, c)
	}
	return v, nil
}

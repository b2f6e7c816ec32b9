// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// interval is the interval at which expectations are checked.
const interval = 50 * time.Millisecond

// Func changes something or checks an expectation. If an expectation is not met, it returns an error that explains why.
type Func func(ctx context.Context, e *Env) error

// Step is one step of a scenario.
type Step struct {
	// Name describes the action or the expectation. A step without a name only groups the steps in Then.
	Name string
	// Do is called once. It may be nil.
	Do Func
	// Expect is called until it returns nil or an error of [NewFinalError]. It may be nil.
	Expect Func
	// Timeout is how long Expect is called. Zero means the timeout of the Runner.
	Timeout time.Duration
	// Then contains the steps that follow. They are skipped if this step fails.
	Then []Step
}

// Do returns a step that calls an action and then runs further steps.
func Do(name string, action Func, then ...Step) Step { return Step{Name: name, Do: action, Then: then} }

// Expect returns a step that waits until an expectation is met.
func Expect(name string, expectation Func) Step { return Step{Name: name, Expect: expectation} }

// Require returns a step that fails if an expectation is not met at once.
func Require(name string, expectation Func) Step { return Step{Name: name, Do: expectation} }

// All returns a step that runs other steps.
func All(steps ...Step) Step { return Step{Then: steps} }

// finalError is an error that waiting cannot resolve.
type finalError struct{ error }

// NewFinalError marks the error of an expectation that can no longer be met. The step then fails without waiting any
// longer.
func NewFinalError(err error) error { return finalError{err} }

// Runner runs steps.
type Runner struct {
	// Env is passed to the steps.
	Env *Env
	// Timeout is how long an expectation may take.
	Timeout time.Duration
	// KeepGoing means that the steps after a failed step are run, too.
	KeepGoing bool
	// Started is called before each step that has a name. It may be nil.
	Started func(s Step)
	// Finished is called after each step that has a name, with its duration and its error, and before the steps that
	// follow. It may be nil. It is not called for a step during which ctx was done.
	Finished func(s Step, duration time.Duration, err error)
}

// Run runs steps and returns the errors of the steps that failed. It returns early if ctx is done.
func (r *Runner) Run(ctx context.Context, steps ...Step) []error {
	var failed []error
	for _, s := range steps {
		errs := r.runWithFollowing(ctx, s)
		failed = append(failed, errs...)
		if ctx.Err() != nil || len(errs) > 0 && !r.KeepGoing {
			break
		}
	}
	return failed
}

// runWithFollowing runs a step and the steps that follow it. Each error begins with the name of the step.
func (r *Runner) runWithFollowing(ctx context.Context, s Step) []error {
	var errs []error
	if err := r.run(ctx, s); err != nil {
		errs = []error{err}
	} else {
		errs = r.Run(ctx, s.Then...)
	}
	if s.Name != "" {
		for i, err := range errs {
			errs[i] = fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return errs
}

// run runs and reports a single step.
func (r *Runner) run(ctx context.Context, s Step) error {
	if s.Name != "" && r.Started != nil {
		r.Started(s)
	}
	began := time.Now()
	var err error
	if s.Do != nil {
		err = s.Do(ctx, r.Env)
	}
	if s.Expect != nil && err == nil {
		err = poll(ctx, cmp.Or(s.Timeout, r.Timeout), func(ctx context.Context) error { return s.Expect(ctx, r.Env) })
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // the scenario was interrupted, so the step has not failed
	}
	if s.Name != "" && r.Finished != nil {
		r.Finished(s, time.Since(began), err)
	}
	return err
}

// poll calls a function until it returns nil or an error of [NewFinalError]. If it returns neither in time, poll
// returns the last error of the function.
func poll(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		err := f(ctx)
		if err == nil || last == nil || ctx.Err() == nil { // an error of the expired context would hide the reason
			last = err
		}
		_, isFinal := errors.AsType[finalError](err)
		return err == nil || isFinal, nil
	})
	if last != nil {
		return last
	}
	return err
}

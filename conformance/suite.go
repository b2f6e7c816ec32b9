// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/deployerkit/deployerkit/contract"
)

// suite holds the subject to the checks of one revision, in the background: first those that may run side by side, then
// those that have the deployer to themselves, then the rules, which judge what all the others did.
type suite struct {
	subject  Subject
	revision contract.Revision
	checks   []Check

	results map[string]chan Result // by the name of the check; each gets its result, and is closed at the end
	cancel  context.CancelFunc
	done    chan struct{}
	// Once done: what went wrong beside the checks, and whether it was ended early.
	err, interrupted error
}

// begin starts a suite. It ends by itself, or with stop.
func begin(ctx context.Context, subject Subject, revision contract.Revision) *suite {
	s := &suite{subject: subject, revision: revision, checks: subject.checks(revision), results: map[string]chan Result{}, done: make(chan struct{})}
	for _, check := range s.checks {
		s.results[check.Name] = make(chan Result, 1)
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		defer s.cancel()
		s.err = s.run(ctx)
		s.interrupted = ctx.Err()
		for _, result := range s.results {
			close(result)
		}
	}()
	return s
}

// run runs all checks.
func (s *suite) run(ctx context.Context) error {
	e, err := openEnv(ctx, s.subject, s.revision)
	if err != nil {
		return err
	}
	s.sideBySide(ctx, e)
	for _, check := range s.checks {
		if check.alone || check.rule != nil {
			s.runCheck(ctx, e, check)
		}
	}
	return e.close()
}

// sideBySide runs the checks that leave the deployer alone, as many at a time as the subject allows.
func (s *suite) sideBySide(ctx context.Context, e *env) {
	group := errgroup.Group{}
	group.SetLimit(s.subject.Parallel)
	for _, check := range s.checks {
		if check.alone || check.rule != nil {
			continue
		}
		group.Go(func() error {
			s.runCheck(ctx, e, check)
			return nil
		})
	}
	_ = group.Wait() // the results have the failures
}

// runCheck runs a check and publishes its result, unless ctx ends before.
func (s *suite) runCheck(ctx context.Context, e *env, check Check) {
	if ctx.Err() != nil {
		return
	}
	result := e.check(ctx, check)
	if ctx.Err() != nil {
		return // it was interrupted
	}
	s.subject.Observe(result)
	s.results[check.Name] <- result
}

// result waits for the result of a check. Errors: why there is none.
func (s *suite) result(ctx context.Context, check Check) (Result, error) {
	select {
	case result, ok := <-s.results[check.Name]:
		if ok {
			return result, nil
		}
		<-s.done
		return Result{}, s.fault()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// fault returns why results are missing. Call it when the suite is done.
func (s *suite) fault() error { return errors.Join(s.err, s.interrupted) }

// stop ends the suite and waits for it. It is not an error that checks were still running.
func (s *suite) stop() error {
	s.cancel()
	<-s.done
	if errors.Is(s.err, context.Canceled) {
		return nil
	}
	return s.err
}

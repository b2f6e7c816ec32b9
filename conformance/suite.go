// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/deployerkit/deployerkit/contract"
)

// suite runs the checks of one revision in the background: first the checks that may run concurrently, then the checks
// that run alone, and finally the rules, which are applied to the histories of all other checks.
type suite struct {
	subject  Subject
	revision contract.Revision
	checks   []Check

	results map[string]chan Result // the key is the name of the check; each channel receives the result, if there is one, and is then closed
	cancel  context.CancelFunc
	done    chan struct{}
	// err is an error that occurred outside of the checks. interrupted is the reason why the suite did not finish. Both
	// fields are set before the channel `done` is closed.
	err, interrupted error
}

// startSuite starts a suite, which runs to its end or until stop is called.
func startSuite(ctx context.Context, subject Subject, revision contract.Revision) *suite {
	s := &suite{subject: subject, revision: revision, checks: subject.listChecks(revision), results: map[string]chan Result{}, done: make(chan struct{})}
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
	s.runConcurrently(ctx, e)
	for _, check := range s.checks {
		if check.alone || check.rule != nil {
			s.runCheck(ctx, e, check)
		}
	}
	return e.close()
}

// runConcurrently runs the checks that may run concurrently, as many at a time as the subject allows.
func (s *suite) runConcurrently(ctx context.Context, e *env) {
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
	_ = group.Wait() // the results contain the failures
}

// runCheck runs a check and publishes its result. If ctx is done before the check has ended, runCheck publishes
// nothing.
func (s *suite) runCheck(ctx context.Context, e *env, check Check) {
	if ctx.Err() != nil {
		return
	}
	result := e.check(ctx, check)
	if ctx.Err() != nil {
		return // the check was interrupted
	}
	s.subject.Observe(result)
	s.results[check.Name] <- result
}

// result waits for the result of a check. It returns an error if the suite ends without this result.
func (s *suite) result(ctx context.Context, check Check) (Result, error) {
	select {
	case result, ok := <-s.results[check.Name]:
		if ok {
			return result, nil
		}
		<-s.done
		return Result{}, s.getError()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// getError returns the reason why results are missing. Call it after the suite has ended.
func (s *suite) getError() error { return errors.Join(s.err, s.interrupted) }

// stop interrupts the suite and waits for its end. Checks that were still running do not cause an error.
func (s *suite) stop() error {
	s.cancel()
	<-s.done
	if errors.Is(s.err, context.Canceled) {
		return nil
	}
	return s.err
}

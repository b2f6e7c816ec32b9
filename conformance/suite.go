// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/deployerkit/deployerkit/contract"
)

// suite runs the checks of one revision in the background: first those that may run concurrently, then those that run
// alone, then the rules, which judge what all the others did.
type suite struct {
	subject  Subject
	revision contract.Revision
	checks   []Check

	results map[string]chan Result // by the name of the check; each channel gets its result, and is closed at the end
	cancel  context.CancelFunc
	done    chan struct{}
	// Set when done is closed: an error outside of the checks, and why the suite was interrupted.
	err, interrupted error
}

// begin starts a suite, which runs to its end or until stop.
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

// sideBySide runs the checks that do not need the deployer alone, as many at a time as the subject allows.
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
	_ = group.Wait() // the results contain the failures
}

// runCheck runs a check and publishes its result, unless ctx is done before.
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

// result waits for the result of a check. The error says why there is none.
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

// fault returns why results are missing. Call it after the suite has ended.
func (s *suite) fault() error { return errors.Join(s.err, s.interrupted) }

// stop interrupts the suite and waits for it. Checks that were still running are not an error.
func (s *suite) stop() error {
	s.cancel()
	<-s.done
	if errors.Is(s.err, context.Canceled) {
		return nil
	}
	return s.err
}

// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"sync"

	"github.com/deployerkit/deployerkit/contract"
)

// course holds the subject to the checks of one revision, in the background: first those that may run side by side, then
// those that have the deployer to themselves, then the rules, which judge what all the others did.
type course struct {
	subject  Subject
	revision contract.Revision
	checks   []Check

	results map[string]chan Result // by the name of the check; each gets its result, and is closed at the end
	cancel  context.CancelFunc
	done    chan struct{}
	// Once done: what went wrong beside the checks, and whether it was ended early.
	err, interrupted error
}

// begin starts a course. It ends by itself, or with stop.
func begin(ctx context.Context, s Subject, revision contract.Revision) *course {
	c := &course{subject: s, revision: revision, checks: s.checks(revision), results: map[string]chan Result{}, done: make(chan struct{})}
	for _, check := range c.checks {
		c.results[check.Name] = make(chan Result, 1)
	}
	ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		defer close(c.done)
		defer c.cancel()
		c.err = c.run(ctx)
		c.interrupted = ctx.Err()
		for _, result := range c.results {
			close(result)
		}
	}()
	return c
}

// run does everything.
func (c *course) run(ctx context.Context) error {
	st, err := open(ctx, c.subject, c.revision)
	if err != nil {
		return err
	}
	c.sideBySide(ctx, st)
	for _, check := range c.checks {
		if check.alone || check.rule != nil {
			c.try(ctx, st, check)
		}
	}
	return st.close()
}

// sideBySide runs the checks that leave the deployer alone, as many at a time as the subject allows.
func (c *course) sideBySide(ctx context.Context, st *stage) {
	slots := make(chan struct{}, c.subject.Parallel)
	var group sync.WaitGroup
	for _, check := range c.checks {
		if check.alone || check.rule != nil {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			c.try(ctx, st, check)
		})
	}
	group.Wait()
}

// try runs a check, unless nobody wants to know any more.
func (c *course) try(ctx context.Context, st *stage, check Check) {
	if ctx.Err() != nil {
		return
	}
	result := st.check(ctx, check)
	if ctx.Err() != nil {
		return // it was interrupted
	}
	c.subject.Observe(result)
	c.results[check.Name] <- result
}

// result waits for the result of a check. Errors: why there is none.
func (c *course) result(ctx context.Context, check Check) (Result, error) {
	select {
	case result, ok := <-c.results[check.Name]:
		if ok {
			return result, nil
		}
		<-c.done
		return Result{}, c.fault()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// fault tells why there are not all results. Call it once the course is done.
func (c *course) fault() error { return errors.Join(c.err, c.interrupted) }

// stop ends the course and waits for it. That it was under way is no error.
func (c *course) stop() error {
	c.cancel()
	<-c.done
	if errors.Is(c.err, context.Canceled) {
		return nil
	}
	return c.err
}

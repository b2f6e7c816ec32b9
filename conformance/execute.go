// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
)

// Execute holds a subject to the contract and returns what was seen, whatever it is: a deployer that fails is no error.
// It is [Run] for programs, and for tests that expect failures.
//
// Errors: a subject that is not valid, a cluster that cannot be started or reached, a deployer that does not start, the end
// of ctx. The report has what was checked until then.
func Execute(ctx context.Context, s Subject) (*Report, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.withDefaults()
	report := &Report{Subject: s.Name}
	var errs []error
	for suites := range s.suites(ctx) {
		for _, c := range suites {
			<-c.done
			report.add(c)
			errs = append(errs, c.fault())
		}
	}
	return report, errors.Join(errs...)
}

// suites starts the suites of all revisions, and hands out those that run at the same time.
func (s Subject) suites(ctx context.Context) func(func([]*suite) bool) {
	return func(yield func([]*suite) bool) {
		var together []*suite
		for _, revision := range s.Revisions {
			if ctx.Err() != nil {
				break
			}
			if c := begin(ctx, s, revision); s.SideBySide {
				together = append(together, c)
			} else if !yield([]*suite{c}) {
				return
			}
		}
		yield(together)
	}
}

// add adds the results of a suite that has ended.
func (r *Report) add(c *suite) {
	for _, check := range c.checks {
		if result, ok := <-c.results[check.Name]; ok {
			r.Results = append(r.Results, result)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
)

// Execute checks a subject against the contract and returns the report. A deployer that fails checks is not an error.
// Execute is [Run] for programs, and for tests that expect failures.
//
// It returns an error if the subject is not valid, if a cluster cannot be started or reached, if the deployer does not
// start, or if ctx is done. The report has the results so far.
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

// suites starts the suites of all revisions, and yields those that run at the same time.
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

// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
)

// Execute checks a subject against the contract and returns the report. Use it in programs and in tests that expect
// failures. In other tests, use [Run].
//
// Execute returns no error for failed checks; use [Report.Err] for these. It returns an error if the subject is not
// valid, if a cluster cannot be started or reached, if the deployer does not start, or if ctx is done. The report then
// contains the results so far.
func Execute(ctx context.Context, s Subject) (*Report, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.withDefaults()
	report := &Report{Subject: s.Name}
	var errs []error
	for suites := range s.startSuites(ctx) {
		for _, c := range suites {
			<-c.done
			report.add(c)
			errs = append(errs, c.getError())
		}
	}
	return report, errors.Join(errs...)
}

// startSuites starts a suite for each revision and yields the suites in groups. The suites of one group run at the same
// time.
func (s Subject) startSuites(ctx context.Context) func(func([]*suite) bool) {
	return func(yield func([]*suite) bool) {
		var together []*suite
		for _, revision := range s.Revisions {
			if ctx.Err() != nil {
				break
			}
			if c := startSuite(ctx, s, revision); s.SideBySide {
				together = append(together, c)
			} else if !yield([]*suite{c}) {
				return
			}
		}
		yield(together)
	}
}

// add waits for the end of a suite and adds its results.
func (r *Report) add(c *suite) {
	for _, check := range c.checks {
		if result, ok := <-c.results[check.Name]; ok {
			r.Results = append(r.Results, result)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
)

// Execute holds a subject to the contract and returns what was seen, whatever it is: a deployer that fails is no error.
// It is [Run] for programs, and for tests that expect failures.
//
// Errors: a subject that is not valid, a cluster that cannot be started or reached, a deployer that does not start. The
// report has what was checked until then.
func Execute(ctx context.Context, s Subject) (*Report, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.withDefaults()
	report := &Report{Subject: s.Name}
	for _, revision := range s.Revisions {
		st, err := open(ctx, s, revision)
		if err != nil {
			return report, err
		}
		for _, c := range Checks() {
			if c.Revision == "" || c.Revision == revision {
				report.Results = append(report.Results, st.check(ctx, c))
			}
			if err := ctx.Err(); err != nil {
				return report, errors.Join(err, st.close())
			}
		}
		if err := st.close(); err != nil {
			return report, err
		}
	}
	return report, nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
)

func TestExitCode(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"done":         {want: 0},
		"to do":        {err: fmt.Errorf("plan: %w", plan.ErrToDo), want: 2},
		"failed":       {err: conformance.ErrFailed, want: 1},
		"wrong usage":  {err: fmt.Errorf("conformance: %w", conformance.ErrUsage), want: 2},
		"did not work": {err: errors.New("boom"), want: 1},
	} {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("%s: exitCode(%v): want %d, got %d", name, tc.err, tc.want, got)
		}
	}
}

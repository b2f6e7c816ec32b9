// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"errors"
	"fmt"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/deployerkit/deployerkit/contract"
)

func TestIsUnchanged(t *testing.T) {
	other := errors.New("other")
	tests := map[string]struct {
		action contract.Action
		err    error
		want   bool
	}{
		"nil":                               {contract.ActionReconcile, nil, false},
		"alone":                             {contract.ActionReconcile, ErrUnchanged, true},
		"ErrUnchanged of a forced run":      {contract.ActionForceReconcile, ErrUnchanged, true},
		"wrapped":                           {contract.ActionReconcile, fmt.Errorf("objects: %w", ErrUnchanged), true},
		"twice":                             {contract.ActionReconcile, errors.Join(ErrUnchanged, fmt.Errorf("b: %w", ErrUnchanged)), true},
		"ErrUnchanged in an aggregate":      {contract.ActionReconcile, utilerrors.NewAggregate([]error{ErrUnchanged}), true},
		"another error":                     {contract.ActionReconcile, other, false},
		"wrapped ErrUnchanged":              {contract.ActionReconcile, fmt.Errorf("objects: %w", other), false},
		"ErrUnchanged joined with an error": {contract.ActionReconcile, errors.Join(ErrUnchanged, other), false},
		"ErrUnchanged joined with a wait":   {contract.ActionReconcile, errors.Join(WaitFor("a door", 0), ErrUnchanged), false},
		"wrapped join with ErrUnchanged":    {contract.ActionReconcile, fmt.Errorf("x: %w", errors.Join(other, ErrUnchanged)), false},
		"ErrUnchanged from Delete":          {contract.ActionDelete, ErrUnchanged, false},
		"ErrUnchanged from Abort":           {contract.ActionAbort, ErrUnchanged, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isUnchanged(test.action, test.err); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"errors"
	"fmt"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/deployerkit/deployerkit/contract"
)

func TestSplitUnchanged(t *testing.T) {
	other, second := errors.New("other"), errors.New("second")
	wait := WaitFor("a door", 0)
	tests := map[string]struct {
		action    contract.Action
		err       error
		want      string // "" for nil
		unchanged bool
	}{
		"nil":                    {contract.ActionReconcile, nil, "", false},
		"alone":                  {contract.ActionReconcile, ErrUnchanged, "", true},
		"of a forced run":        {contract.ActionForceReconcile, ErrUnchanged, "", true},
		"wrapped":                {contract.ActionReconcile, fmt.Errorf("objects: %w", ErrUnchanged), "", true},
		"twice":                  {contract.ActionReconcile, errors.Join(ErrUnchanged, fmt.Errorf("b: %w", ErrUnchanged)), "", true},
		"in an aggregate":        {contract.ActionReconcile, utilerrors.NewAggregate([]error{ErrUnchanged}), "", true},
		"another error":          {contract.ActionReconcile, other, "other", false},
		"joined with an error":   {contract.ActionReconcile, errors.Join(ErrUnchanged, other), "other", false},
		"joined with two errors": {contract.ActionReconcile, errors.Join(other, ErrUnchanged, second), "other\nsecond", false},
		"joined with a wait":     {contract.ActionReconcile, errors.Join(wait, ErrUnchanged), "waiting for a door", false},
		"a wrapped join":         {contract.ActionReconcile, fmt.Errorf("x: %w", errors.Join(other, ErrUnchanged)), "x: other\nnothing has changed", false},
		"from Delete":            {contract.ActionDelete, ErrUnchanged, "nothing has changed", false},
		"from Abort":             {contract.ActionAbort, ErrUnchanged, "nothing has changed", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rest, unchanged := splitUnchanged(test.action, test.err)
			text := ""
			if rest != nil {
				text = rest.Error()
			}
			if text != test.want || unchanged != test.unchanged {
				t.Errorf("got %q, %t; want %q, %t", text, unchanged, test.want, test.unchanged)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"errors"
	"fmt"
	"testing"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestAsError(t *testing.T) {
	boom := errors.New("boom")
	minute, hour := &Error{"a", time.Minute}, &Error{"b", time.Hour}
	tests := map[string]struct {
		err  error
		want time.Duration // 0 if err is not an Error
	}{
		"nil":                                 {nil, 0},
		"another error":                       {boom, 0},
		"a wait":                              {minute, time.Minute},
		"a wrapped wait":                      {fmt.Errorf("object x: %w", minute), time.Minute},
		"the shortest of several waits":       {errors.Join(hour, minute), time.Minute},
		"a wait in an aggregate":              {utilerrors.NewAggregate([]error{hour, minute}), time.Minute},
		"a wait joined with an error":         {errors.Join(minute, boom), 0},
		"a wrapped wait joined with an error": {fmt.Errorf("%w and %w", minute, boom), 0},
		"a nested wait joined with an error":  {errors.Join(hour, fmt.Errorf("x: %w", errors.Join(minute, boom))), 0},
		"a wait without a time":               {&Error{"x", 0}, time.Minute},
		"a wait with a negative time":         {&Error{"x", -time.Hour}, time.Minute},
		"a wait of an hour joined with a wait without a time": {errors.Join(hour, &Error{"x", 0}), time.Minute},
		"a wrapped error": {fmt.Errorf("x: %w", boom), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, ok := AsError(test.err)
			if ok != (test.want > 0) {
				t.Fatalf("err is an Error: %t", ok)
			}
			if ok && w.Delay() != test.want {
				t.Errorf("waits %s, want %s", w.Delay(), test.want)
			}
		})
	}
}

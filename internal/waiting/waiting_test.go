// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"errors"
	"fmt"
	"testing"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestOf(t *testing.T) {
	boom := errors.New("boom")
	minute, hour := &Error{"a", time.Minute}, &Error{"b", time.Hour}
	tests := map[string]struct {
		err  error
		want time.Duration // 0 if err is not an Error
	}{
		"nil":                           {nil, 0},
		"another error":                 {boom, 0},
		"a wait":                        {minute, time.Minute},
		"wrapped":                       {fmt.Errorf("object x: %w", minute), time.Minute},
		"the shortest of several":       {errors.Join(hour, minute), time.Minute},
		"of an aggregate":               {utilerrors.NewAggregate([]error{hour, minute}), time.Minute},
		"joined with an error":          {errors.Join(minute, boom), 0},
		"wrapped beside an error":       {fmt.Errorf("%w and %w", minute, boom), 0},
		"deep beside an error":          {errors.Join(hour, fmt.Errorf("x: %w", errors.Join(minute, boom))), 0},
		"without a time":                {&Error{"x", 0}, time.Minute},
		"with a negative time":          {&Error{"x", -time.Hour}, time.Minute},
		"an hour beside without a time": {errors.Join(hour, &Error{"x", 0}), time.Minute},
		"wrapped error":                 {fmt.Errorf("x: %w", boom), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, ok := Of(test.err)
			if ok != (test.want > 0) {
				t.Fatalf("err is an Error: %t", ok)
			}
			if ok && w.Delay() != test.want {
				t.Errorf("waits %s, want %s", w.Delay(), test.want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"errors"
	"fmt"
	"testing"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestWaitOf(t *testing.T) {
	boom := errors.New("boom")
	minute, hour := WaitFor("a", time.Minute), WaitFor("b", time.Hour)
	tests := map[string]struct {
		err  error
		want time.Duration // 0 if err is not an error of WaitFor
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
		"without a time":                {WaitFor("x", 0), time.Minute},
		"with a negative time":          {WaitFor("x", -time.Hour), time.Minute},
		"an hour beside without a time": {errors.Join(hour, WaitFor("x", 0)), time.Minute},
		"wrapped error":                 {fmt.Errorf("x: %w", boom), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, ok := waitOf(test.err)
			if ok != (test.want > 0) {
				t.Fatalf("err is an error of WaitFor: %t", ok)
			}
			if ok && w.delay() != test.want {
				t.Errorf("waits %s, want %s", w.delay(), test.want)
			}
			if reason, after, as := AsWait(test.err); as != ok || after != test.want || (reason != "") != ok {
				t.Errorf("AsWait: %q, %s, %t", reason, after, as)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errBoom = errors.New("boom")

// newFunc returns a Func that appends a name to calls and returns an error.
func newFunc(calls *[]string, name string, err error) Func {
	return func(context.Context, *Env) error {
		*calls = append(*calls, name)
		return err
	}
}

func formatErrors(errs []error) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		keepGoing bool
		steps     func(calls *[]string) []Step
		calls     []string
		errs      []string
	}{
		"runs the steps and those that follow in order": {
			steps: func(c *[]string) []Step {
				return []Step{Do("a", newFunc(c, "a", nil), Expect("b", newFunc(c, "b", nil))), All(Require("c", newFunc(c, "c", nil)))}
			},
			calls: []string{"a", "b", "c"},
		},
		"skips the steps that follow a failed action": {
			keepGoing: true,
			steps: func(c *[]string) []Step {
				return []Step{Do("a", newFunc(c, "a", errBoom), Expect("b", newFunc(c, "b", nil))), Do("c", newFunc(c, "c", nil))}
			},
			calls: []string{"a", "c"}, errs: []string{"a: boom"},
		},
		"stops after the first failure": {
			steps: func(c *[]string) []Step {
				return []Step{Do("a", newFunc(c, "a", nil), Require("b", newFunc(c, "b", errBoom)), Do("c", newFunc(c, "c", nil))), Do("d", newFunc(c, "d", nil))}
			},
			calls: []string{"a", "b"}, errs: []string{"a: b: boom"},
		},
		"keeps going after a failed check": {
			keepGoing: true,
			steps: func(c *[]string) []Step {
				return []Step{Do("a", nil, Expect("b", newFunc(c, "b", NewFinalError(errBoom))), Expect("c", newFunc(c, "c", NewFinalError(errBoom)))), Do("d", newFunc(c, "d", nil))}
			},
			calls: []string{"b", "c", "d"}, errs: []string{"a: b: boom", "a: c: boom"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			r := Runner{Timeout: time.Minute, KeepGoing: tc.keepGoing}
			errs := r.Run(t.Context(), tc.steps(&calls)...)
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("calls: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.errs, formatErrors(errs)); diff != "" {
				t.Errorf("errors: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestRunWaitsForExpectations(t *testing.T) {
	t.Run("until they are met", func(t *testing.T) {
		var calls []string
		first := newFunc(&calls, "not yet", errBoom)
		step := Expect("a", func(ctx context.Context, e *Env) error {
			if len(calls) < 3 {
				return first(ctx, e)
			}
			return nil
		})
		if errs := (&Runner{Timeout: time.Minute}).Run(t.Context(), step); errs != nil || len(calls) != 3 {
			t.Errorf("got %v after %d calls, want success after 3", errs, len(calls))
		}
	})
	t.Run("until the timeout of the step, and returns the reason", func(t *testing.T) {
		step := Expect("a", func(context.Context, *Env) error { return errBoom })
		step.Timeout = time.Millisecond
		errs := (&Runner{Timeout: time.Hour}).Run(t.Context(), step)
		if len(errs) != 1 || !errors.Is(errs[0], errBoom) {
			t.Errorf("got %v, want %v", errs, errBoom)
		}
	})
}

func TestRunReportsSteps(t *testing.T) {
	var reports []string
	r := Runner{
		Timeout: time.Minute, KeepGoing: true,
		Started: func(s Step) { reports = append(reports, "started "+s.Name) },
		Finished: func(s Step, _ time.Duration, err error) {
			reports = append(reports, "finished "+s.Name+": "+errText(err))
		},
	}
	var calls []string
	r.Run(t.Context(), All(Do("a", newFunc(&calls, "a", nil), Expect("b", newFunc(&calls, "b", NewFinalError(errBoom))))))
	want := []string{"started a", "finished a: ok", "started b", "finished b: boom"}
	if diff := cmp.Diff(want, reports); diff != "" {
		t.Errorf("reports: -want, +got:\n%s", diff)
	}
}

func errText(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

func TestRunReportsNoFailureWhenItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r := Runner{Timeout: time.Minute, KeepGoing: true, Finished: func(s Step, _ time.Duration, err error) { t.Errorf("%s was reported: %v", s.Name, err) }}
	interrupted := Expect("a", func(context.Context, *Env) error {
		cancel(errBoom)
		return errors.New("not yet")
	})
	errs := r.Run(ctx, interrupted, Do("b", func(context.Context, *Env) error { t.Error("a later step ran"); return nil }))
	if len(errs) != 1 || !errors.Is(errs[0], errBoom) {
		t.Errorf("got %v, want the cause of the interruption", errs)
	}
}

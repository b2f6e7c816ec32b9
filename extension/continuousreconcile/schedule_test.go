// SPDX-License-Identifier: Apache-2.0

package continuousreconcile_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile/validation"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

var errBoom = errors.New("boom")

func newEverySpec(d time.Duration) *cr.ContinuousReconcileSpec {
	return &cr.ContinuousReconcileSpec{Every: &lsv1alpha1.Duration{Duration: d}}
}

func newCronSpec(line string) *cr.ContinuousReconcileSpec {
	return &cr.ContinuousReconcileSpec{Cron: line}
}

// start is a Monday.
var start = time.Date(2026, time.March, 2, 10, 20, 30, 0, time.UTC)

func TestSchedule(t *testing.T) {
	both := newEverySpec(time.Hour)
	both.Cron = "* * * * *"
	bothZero := newEverySpec(0)
	bothZero.Cron = "* * * * *"
	for name, tc := range map[string]struct {
		reason string
		spec   *cr.ContinuousReconcileSpec
		next   time.Time // zero if there is no schedule
		err    string
	}{
		"nil":                            {reason: "no schedule", spec: nil},
		"empty":                          {reason: "no schedule", spec: &cr.ContinuousReconcileSpec{}},
		"only every with the value zero": {reason: "the API module calls it empty", spec: newEverySpec(0)},
		"every [Lx4]":                    {reason: "after a time", spec: newEverySpec(time.Hour), next: start.Add(time.Hour)},
		"every 1.5s":                     {reason: "whole seconds", spec: newEverySpec(1500 * time.Millisecond), next: start.Add(time.Second)},
		"every 1ns":                      {reason: "one second at least", spec: newEverySpec(1), next: start.Add(time.Second)},
		"cron [Lx4]":                     {reason: "at the next full hour", spec: newCronSpec("0 * * * *"), next: start.Truncate(time.Hour).Add(time.Hour)},
		"cron with a zone":               {reason: "12:00 in Berlin is 11:00", spec: newCronSpec("CRON_TZ=Europe/Berlin 0 12 * * *"), next: start.Truncate(time.Hour).Add(time.Hour)},
		"cron every":                     {reason: "a standard descriptor", spec: newCronSpec("@every 90s"), next: start.Add(90 * time.Second)},
		"both [Lx4]":                     {reason: "they exclude each other", spec: both, err: "continuous reconcile: cron and every are mutually exclusive"},
		"both, with every zero":          {reason: "they exclude each other", spec: bothZero, err: "continuous reconcile: cron and every are mutually exclusive"},
		"negative":                       {reason: "time does not run back", spec: newEverySpec(-time.Hour), err: "continuous reconcile: every -1h0m0s is not greater than zero"},
		"invalid cron expression":        {reason: "not a schedule", spec: newCronSpec("foo"), err: `continuous reconcile: cron "foo": expected exactly 5 fields, found 1: [foo]`},
		"cron expression for which the parser panics": {reason: "no panic in production", spec: newCronSpec("TZ=UTC"), err: `continuous reconcile: cron "TZ=UTC" is not a valid schedule`},
		"an unknown descriptor":                       {reason: "not a schedule", spec: newCronSpec("@sometimes"), err: `continuous reconcile: cron "@sometimes": unrecognized descriptor: @sometimes`},
	} {
		t.Run(name, func(t *testing.T) {
			schedule, err := continuousreconcile.ParseSchedule(tc.spec)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.err {
				t.Fatalf("%s: got the error %q, want %q", tc.reason, got, tc.err)
			}
			if (schedule != nil) != !tc.next.IsZero() {
				t.Fatalf("%s: got the schedule %v", tc.reason, schedule)
			}
			if schedule != nil && !schedule.Next(start).Equal(tc.next) {
				t.Errorf("%s: got %s, want %s", tc.reason, schedule.Next(start), tc.next)
			}
		})
	}
}

func TestFromSpec(t *testing.T) {
	specOf := func(spec *cr.ContinuousReconcileSpec, err error) continuousreconcile.NextFunc {
		return continuousreconcile.FromSpec(func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) { return spec, err })
	}
	t.Run("FromSpec without a schedule never runs", func(t *testing.T) {
		for _, spec := range []*cr.ContinuousReconcileSpec{nil, {}, newCronSpec("0 0 30 2 *")} {
			if next, err := specOf(spec, nil)(t.Context(), start, nil); next != nil || err != nil {
				t.Errorf("%v: got %v and %v", spec, next, err)
			}
		}
	})
	t.Run("cron expressions use UTC regardless of the zone of the argument", func(t *testing.T) {
		want := time.Date(2026, time.March, 3, 6, 0, 0, 0, time.UTC)
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 9*3600), time.FixedZone("west", -9*3600)} {
			next, err := specOf(newCronSpec("0 6 * * *"), nil)(t.Context(), start.In(zone), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, *next); diff != "" {
				t.Errorf("%s: -want +got:\n%s", zone, diff)
			}
		}
	})
	t.Run("an invalid schedule is a configuration problem", func(t *testing.T) {
		_, err := specOf(newCronSpec("foo"), nil)(t.Context(), start, nil)
		if !lserrors.ContainsErrorCode(err, lsv1alpha1.ErrorConfigurationProblem) {
			t.Errorf("error = %v, want the code %s", err, lsv1alpha1.ErrorConfigurationProblem)
		}
	})
	t.Run("the error of the deployer is returned", func(t *testing.T) {
		if _, err := specOf(nil, errBoom)(t.Context(), start, nil); !errors.Is(err, errBoom) {
			t.Errorf("error = %v, want %v", err, errBoom)
		}
	})
	t.Run("a nil function yields nil", func(t *testing.T) {
		if continuousreconcile.FromSpec(nil) != nil {
			t.Error("got a function")
		}
	})
}

// FuzzParseSchedule compares Schedule with the validation of the API module, which panics for some cron lines.
func FuzzParseSchedule(f *testing.F) {
	for _, line := range []string{"", "0 * * * *", "*/5 1-3 * JAN MON", "@daily", "@every 1h", "TZ=UTC", "CRON_TZ=Europe/Berlin 0 6 * * *", "TZ= * * * * *", "0 0 30 2 *", "a b c d e"} {
		f.Add(line, int64(0))
		f.Add(line, int64(time.Hour))
	}
	f.Add("", int64(-1))
	f.Add("", int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, line string, nanos int64) {
		spec := newCronSpec(line)
		if nanos != 0 {
			spec.Every = &lsv1alpha1.Duration{Duration: time.Duration(nanos)}
		}
		schedule, err := continuousreconcile.ParseSchedule(spec)
		if valid, known := isValidUpstream(spec); known && valid != (err == nil) {
			t.Errorf("got %v, the API module says valid: %t", err, valid)
		}
		if err == nil && schedule != nil {
			if next := schedule.Next(start); !next.IsZero() && !next.After(start) {
				t.Errorf("%q: got %s, which is not after %s", line, next, start)
			}
		}
		if err != nil && strings.Contains(err.Error(), "panic") {
			t.Errorf("error = %v, want no panic", err)
		}
	})
}

func isValidUpstream(spec *cr.ContinuousReconcileSpec) (valid, known bool) {
	defer func() {
		if recover() != nil {
			known = false
		}
	}()
	return len(validation.ValidateContinuousReconcileSpec(field.NewPath("spec"), spec)) == 0, true
}

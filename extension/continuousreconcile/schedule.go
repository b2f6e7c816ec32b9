// SPDX-License-Identifier: Apache-2.0

package continuousreconcile

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/go-logr/logr"
	"github.com/robfig/cron/v3"
)

// NextFunc returns the time of the next run of an item that was last reconciled at lastReconcileTime, or nil if no run
// is scheduled. The result must depend only on the arguments, not on the current time or on random numbers. To
// determine the period, the hook also calls NextFunc with the result of an earlier call.
type NextFunc func(ctx context.Context, lastReconcileTime time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error)

// FromSpec returns a NextFunc for schedules that are part of the items. The function specOf returns the spec of an
// item's schedule. If the spec is nil or empty, the item has no schedule. If the schedule is invalid, the returned
// NextFunc fails with the code ERR_CONFIGURATION_PROBLEM. It returns the error of specOf unchanged. If specOf is nil,
// FromSpec returns nil.
func FromSpec(specOf func(di *lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error)) NextFunc {
	if specOf == nil {
		return nil
	}
	var warned atomic.Bool
	return func(ctx context.Context, lastReconcileTime time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error) {
		spec, err := specOf(di)
		if err != nil {
			return nil, err
		}
		schedule, err := ParseSchedule(spec)
		if err != nil {
			return nil, lserrors.NewWrappedError(err, "ContinuousReconcile", "InvalidSchedule", err.Error(), lsv1alpha1.ErrorConfigurationProblem)
		}
		if schedule == nil {
			return nil, nil
		}
		if spec.Every != nil && spec.Every.Duration < time.Second && !warned.Swap(true) {
			logr.FromContextOrDiscard(ctx).Info("Warning: a duration is too short, so the minimum is used instead",
				"option", "continuous reconcile: every", "duration", spec.Every.String(), "minimum", time.Second.String())
		}
		next := schedule.Next(lastReconcileTime.UTC()) // UTC instead of the local time zone, so that every replica computes the same time
		if next.IsZero() {
			return nil, nil // a date that does not exist, such as the 30th of February
		}
		return &next, nil
	}
}

// ParseSchedule parses a spec. It returns nil if the spec is nil or empty. It returns an error if both Cron and Every
// are set, if Every is negative, or if Cron is not a standard crontab line (five fields, "@daily", "@every 1h"). It
// rounds Every down to whole seconds, but not below one second. ParseSchedule accepts the same specs as the API
// module's own validation.
func ParseSchedule(spec *cr.ContinuousReconcileSpec) (cron.Schedule, error) {
	switch {
	case spec == nil || (spec.Cron == "" && (spec.Every == nil || spec.Every.Duration == 0)):
		return nil, nil
	case spec.Cron != "" && spec.Every != nil:
		return nil, errors.New("continuous reconcile: cron and every are mutually exclusive")
	case spec.Cron != "":
		return parse(spec.Cron)
	case spec.Every.Duration < 0:
		return nil, fmt.Errorf("continuous reconcile: every %s is not greater than zero", spec.Every.Duration)
	default:
		return cron.Every(spec.Every.Duration), nil
	}
}

// parse parses a cron line. Some lines, such as "TZ=UTC", make the parser panic; parse then returns an error.
func parse(line string) (schedule cron.Schedule, err error) {
	defer func() {
		if v := recover(); v != nil {
			schedule, err = nil, fmt.Errorf("continuous reconcile: cron %q is not a valid schedule", line)
		}
	}()
	schedule, err = cron.ParseStandard(line)
	if err != nil {
		return nil, fmt.Errorf("continuous reconcile: cron %q: %w", line, err)
	}
	return schedule, nil
}

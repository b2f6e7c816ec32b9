// SPDX-License-Identifier: Apache-2.0

package continuousreconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/robfig/cron/v3"
)

// Next returns when an item that was last reconciled at lastReconcileTime is to be reconciled next, nil for never. It
// must depend on its arguments only: neither on the current time nor on chance. It is also asked for the time after
// the next one, to learn the period.
type Next func(ctx context.Context, lastReconcileTime time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error)

// FromSpec makes a Next of the schedule that specOf finds in the item; a nil or empty one is never. A schedule that
// is wrong is an error with the code ERR_CONFIGURATION_PROBLEM. A nil specOf gives nil.
func FromSpec(specOf func(di *lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error)) Next {
	if specOf == nil {
		return nil
	}
	return func(_ context.Context, lastReconcileTime time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error) {
		spec, err := specOf(di)
		if err != nil {
			return nil, fmt.Errorf("get continuous reconcile spec: %w", err)
		}
		schedule, err := Schedule(spec)
		if err != nil {
			return nil, lserrors.NewWrappedError(err, "ContinuousReconcile", "InvalidSchedule", err.Error(), lsv1alpha1.ErrorConfigurationProblem)
		}
		if schedule == nil {
			return nil, nil
		}
		next := schedule.Next(lastReconcileTime.UTC()) // not the zone of this process: every replica computes the same
		if next.IsZero() {
			return nil, nil // a date that never comes, such as the 30th of February
		}
		return &next, nil
	}
}

// Schedule reads a spec, nil for a nil or empty one. Cron and Every together are an error, as are a negative Every
// and a Cron that is not a standard crontab line (five fields, "@daily", "@every 1h"). Every is rounded down to whole
// seconds and is one second at least. It accepts and refuses what the API module's own validation does.
func Schedule(spec *cr.ContinuousReconcileSpec) (cron.Schedule, error) {
	switch {
	case spec == nil || (spec.Cron == "" && (spec.Every == nil || spec.Every.Duration == 0)):
		return nil, nil
	case spec.Cron != "" && spec.Every != nil:
		return nil, errors.New("continuous reconcile: cron and every exclude each other")
	case spec.Cron != "":
		return parse(spec.Cron)
	case spec.Every.Duration < 0:
		return nil, fmt.Errorf("continuous reconcile: every %s is not greater than zero", spec.Every.Duration)
	default:
		return cron.Every(spec.Every.Duration), nil
	}
}

// parse guards a parser that panics on some lines, "TZ=UTC" for one.
func parse(line string) (schedule cron.Schedule, err error) {
	defer func() {
		if v := recover(); v != nil {
			schedule, err = nil, fmt.Errorf("continuous reconcile: cron %q is not a schedule", line)
		}
	}()
	schedule, err = cron.ParseStandard(line)
	if err != nil {
		return nil, fmt.Errorf("continuous reconcile: cron %q: %w", line, err)
	}
	return schedule, nil
}

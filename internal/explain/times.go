// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// toTimes returns when the next events for the item are expected.
func (f *Facts) toTimes(d contract.Decision) Times {
	var t Times
	note := func(text string) { t.Notes = append(t.Notes, text) }
	if d.Due && !d.New {
		switch deadline, ok := contract.RunDeadline(f.Item, d); {
		case d.Action == contract.ActionAbort:
			t.Deadline = newTime(contract.AbortDeadline(f.Item, f.Now))
		case ok:
			t.Deadline = newTime(deadline)
		default:
			note("The run has no deadline.")
		}
	}
	if _, _, err := contract.Timeout(f.Item); err != nil {
		note("spec.timeout is not valid.")
	}
	if last := len(f.History) - 1; last >= 0 && f.History[last].Next != nil {
		t.NextReconcile = newTime(f.History[last].Next.At)
	}
	if d.Due && !d.New && t.NextReconcile == nil && contract.StoppedByHookMessage(f.Item) == "" && !f.Item.Status.LastReconcileTime.IsZero() {
		if f.Item.Status.LastError != nil {
			note("Failures are retried with a backoff that doubles from 1 s to 5 min, if the deployer uses the default backoff.")
		} else {
			note("A run in phase Progressing is checked when an object changes, and every 5 s if the deployer uses the default interval.")
		}
	}
	next, why := nextContinuous(f.Item, f.Now)
	t.NextContinuousReconcile = newTime(next)
	if why != "" {
		note(why)
	}
	return t
}

// clockAt is a clock that always shows the same time.
type clockAt time.Time

func (c clockAt) Now() time.Time                  { return time.Time(c) }
func (c clockAt) Since(t time.Time) time.Duration { return time.Time(c).Sub(t) }

// nextContinuous returns the time when continuous reconciliation forces the next run. The time is zero if there is no
// schedule or if the schedule is not in effect. In the second case, the returned string may explain why.
func nextContinuous(di *lsv1alpha1.DeployItem, now time.Time) (time.Time, string) {
	spec := readContinuousSpec(di)
	if spec == nil {
		return time.Time{}, ""
	}
	if di.Annotations[continuousreconcile.ActiveAnnotation] == "false" {
		return time.Time{}, "Continuous reconciliation is switched off by annotation."
	}
	hook := continuousreconcile.Extension{
		Next:  continuousreconcile.FromSpec(func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) { return spec, nil }),
		Clock: clockAt(now),
	}.Setup()
	hooks := extension.ReconcileExtensionHooks{}.RegisterHookSetup(hook)
	res, err := hooks.ExecuteHooks(context.Background(), logr.Discard(), di.DeepCopy(), nil, extension.ShouldReconcileHook)
	switch {
	case err != nil:
		return time.Time{}, "The schedule of continuous reconciliation is not valid."
	case res == nil:
		return time.Time{}, ""
	case !res.AbortReconcile:
		return now, ""
	}
	return now.Add(res.ReconcileResult.RequeueAfter), ""
}

// readContinuousSpec reads the schedule from spec.config.continuousReconcile. The manifest deployer, the mock deployer
// and declarative deployers use this field.
func readContinuousSpec(di *lsv1alpha1.DeployItem) *cr.ContinuousReconcileSpec {
	if di.Spec.Configuration == nil {
		return nil
	}
	var config struct {
		ContinuousReconcile *cr.ContinuousReconcileSpec `json:"continuousReconcile"`
	}
	if json.Unmarshal(di.Spec.Configuration.Raw, &config) != nil {
		return nil
	}
	spec := config.ContinuousReconcile
	if spec == nil || spec.Cron == "" && (spec.Every == nil || spec.Every.Duration == 0) {
		return nil
	}
	return spec
}

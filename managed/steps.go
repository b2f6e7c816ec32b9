// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/pace"
)

// TakeTriggers takes the triggers of this run from the queue of the item. Triggers are changes by other writers and
// calls of ResourceManager.Trigger, which request a run, and calls of ResourceManager.ForceResync, which only affect
// the next run. Triggers that arrive later start another run, so call TakeTriggers before you read any state. Further
// calls of TakeTriggers have no effect. Apply calls TakeTriggers if the deployer has not called it.
func (r *Run) TakeTriggers() { r.corrections.takeTriggers(r.isBackground || r.isWaiting) }

// IsResyncForced reports whether the run must check every object, even if no watch reported a change. It returns false
// before TakeTriggers.
func (r *Run) IsResyncForced() bool { return r.corrections.causes.ForceResync }

// ReturnTriggers returns the triggers of this run to the queue of the item, so that the next run handles them. Call it
// if the run fails after TakeTriggers and before RecordResult, because no watch reports these triggers again.
// RecordResult calls it itself if necessary. ReturnTriggers has no effect before TakeTriggers and after RecordResult.
func (r *Run) ReturnTriggers() { r.corrections.returnTriggers() }

// Apply applies desired objects to the item's target; see [apply.Engine.Apply]. It returns nil if everything is done.
// If objects are unfinished, it returns a [deployerlib.WaitFor], and the item is reconciled again when a watch reports
// a change. The deployer must return every error unchanged, because the error contains an error code.
func (r *Run) Apply(ctx context.Context, desired []apply.Desired, o apply.Options) (apply.Report, error) {
	r.TakeTriggers()
	r.Cluster.watcher.Suspend(r.Item.UID)
	inventory, report, err := r.Cluster.NewEngine(r.CompleteOptions(r.Cluster, o)).Apply(ctx, r.Owner, desired, r.Inventory)
	return report, r.RecordResult(ctx, inventory, report, err)
}

// RecordResult records the result of an engine or a Session, and calls WatchInventory so that later drift is detected.
// It is meant for callers that use their own engine. Apply calls RecordResult itself. The caller must call
// Watcher.Suspend before the first write, because the watches also report intermediate states. If the engine failed,
// err is its error. RecordResult returns nil if the next step may begin, and otherwise the same errors as Apply.
func (r *Run) RecordResult(ctx context.Context, inventory apply.Inventory, report apply.Report, err error) error {
	if err != nil {
		r.ReturnTriggers()
	} else if r.corrections.markReported() {
		r.corrections.recordDriftEvents(r.Cluster, r.RecordEvent)
		r.Manager.setCondition(r.Item, ConditionContested, lsv1alpha1.ConditionTrue, "ChangedAgain", r.corrections.formatContested())
	}
	if noteErr := r.SetInventory(inventory); noteErr != nil {
		return noteErr
	}
	err = cmp.Or(err, r.WatchInventory(ctx, report.Owned))
	switch {
	case err != nil:
		return r.ConvertApplyError(err)
	case report.HasUnserved():
		return r.NewWaitError("apply", 0, report.Reason(), r.UnservedPollInterval())
	case !report.IsDone():
		return r.NewWaitError("apply", 0, report.Reason(), report.RetryAfter())
	}
	return nil
}

// UnservedPollInterval returns the time after which an item that waits for a kind which the target does not serve is
// reconciled again. The time grows with the time that the item has waited.
func (r *Run) UnservedPollInterval() time.Duration {
	waited := r.item.getWaitTime("served", r.Manager.rt.Clock.Now())
	return min(max(waited/4, minUnservedPollInterval), maxUnservedPollInterval)
}

// These constants limit the result of UnservedPollInterval.
const (
	minUnservedPollInterval = 2 * time.Second
	maxUnservedPollInterval = 30 * time.Second
)

// AfterDeployment sends the patches in apply.Desired.PatchAfterDeployment; see [apply.Engine.AfterDeployment]. Call it
// when the objects are ready, with the same desired objects as Apply. AfterDeployment returns the same errors as Apply.
func (r *Run) AfterDeployment(ctx context.Context, desired []apply.Desired, o apply.Options) error {
	if !slices.ContainsFunc(r.Inventory.Entries, func(entry apply.Entry) bool { return entry.PatchDue }) {
		return nil
	}
	r.Cluster.watcher.Suspend(r.Item.UID)
	inventory, report, err := r.Cluster.NewEngine(r.CompleteOptions(r.Cluster, o)).AfterDeployment(ctx, r.Owner, desired, r.Inventory)
	return r.RecordResult(ctx, inventory, report, err)
}

// Delete deletes the item's objects, group by group, and then the remaining objects in former clusters (see
// CleanUpFormerClusters). If `groups` is nil, it uses the default groups. If `bound` is not 0 and the deletion takes
// longer, Delete returns a timeout error. Objects that belong to no group are not deleted. Delete reports them in an
// event. When all other objects are gone, Delete removes the item from memory and returns nil. Otherwise it returns the
// same errors as Apply.
func (r *Run) Delete(ctx context.Context, o apply.Options, groups []apply.DeletionGroup, bound time.Duration) error {
	if err := r.addUnknownObjects(ctx, nil); err != nil {
		return err
	}
	r.Cluster.watcher.Forget(r.Item.UID)
	inventory, report, err := r.Cluster.NewEngine(r.CompleteOptions(r.Cluster, o)).Delete(ctx, r.Owner, r.Inventory, groups)
	if noteErr := r.SetInventory(inventory); noteErr != nil {
		return noteErr
	}
	switch {
	case err != nil:
		return r.ConvertApplyError(err)
	case report.HasUnserved():
		return r.NewWaitError("delete", bound, report.Reason(), r.UnservedPollInterval())
	case !report.IsDone():
		return r.NewWaitError("delete", bound, report.Reason(), report.RetryAfter())
	}
	for _, left := range report.Skipped {
		r.RecordEvent(newEventReference(left), corev1.EventTypeWarning, "Left", left.String()+" is not deleted, because no deletion group selects it")
	}
	if err := r.CleanUpFormerClusters(ctx, o, filterOwnGroups(groups)); err != nil {
		return err
	}
	r.Manager.Forget(r.Item.UID)
	return nil
}

// filterOwnGroups returns the groups that delete only objects of the item itself, in the item's own target.
func filterOwnGroups(groups []apply.DeletionGroup) []apply.DeletionGroup {
	return slices.DeleteFunc(slices.Clone(groups), func(g apply.DeletionGroup) bool { return g.DeleteAll || g.Engine != nil })
}

// These constants are the times after which a waiting item is reconciled even if no watch has reported a change.
const (
	pollIntervalWatched   = 30 * time.Second
	pollIntervalUnwatched = 5 * time.Second
)

// PollInterval returns the time after which the item's objects must be read again if no watch reports a change. Pass it
// to Wait as the last argument. The time is shorter if some objects cannot be watched.
func (r *Run) PollInterval() time.Duration {
	if r.hasUnwatchedKind {
		return pollIntervalUnwatched
	}
	return pollIntervalWatched
}

// NewWaitError returns an error that makes the item wait. The item is reconciled again when a watch reports a change of
// one of its objects, but at most once per second. If no watch reports a change, it is reconciled again after the time
// after. Before Connect, nothing is watched. The reason describes what the step is waiting for. If bound is not 0 and
// the step has waited longer than bound in this run, NewWaitError returns a timeout error instead, which contains the name of
// the step.
func (r *Run) NewWaitError(step string, bound time.Duration, reason string, after time.Duration) error {
	if waited := r.item.getWaitTime(step, r.Manager.rt.Clock.Now()); bound > 0 {
		if waited >= bound {
			r.item.resetWaiting()
			return newTimeoutError(step, bound, reason)
		}
		after = min(after, bound-waited)
	}
	if after > 0 {
		after = max(after, pace.Min)
	}
	r.item.triggers.SetWaitReason(reason)
	if r.Cluster != nil {
		r.item.startFollowing(r.Cluster.watcher, r.Item.UID)
	}
	return deployerlib.WaitFor(reason, after)
}

// Finish records that the run is done. It resets the waiting times, stops following changes of the objects, and sets or
// removes the condition ReadinessUnknown.
func (r *Run) Finish() {
	r.item.stopFollowing()
	r.item.triggers.RequestIfDue() // drift that was queued during the wait has no timer yet
	r.item.resetWaiting()
	if r.Item.Status.JobID == "" {
		r.item.resetApplied() // a job may run again under the same ID if its end could not be stored
	}
	r.setReadinessUnknown()
	r.item.ready.keep(r.Inventory.Entries)
}

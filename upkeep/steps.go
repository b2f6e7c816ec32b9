// SPDX-License-Identifier: Apache-2.0

package upkeep

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

// Take takes the triggers of this run from the queue of the item. Triggers are changes by other writers and calls of
// Wake, which request a run, and calls of Keeper.Thorough, which only affect the next run. Triggers that arrive later
// start another run, so call Take before you read any state. Further calls of Take have no effect. Apply calls Take if
// the deployer has not called it.
func (r *Run) Take() { r.corrections.take(r.background || r.waits) }

// Thorough reports whether the run must check every object, even if no watch reported a change. It returns false before
// Take.
func (r *Run) Thorough() bool { return r.corrections.causes.ForceResync }

// GiveBack returns the triggers of this run to the queue of the item, so that the next run handles them. Call it if the
// run fails after Take and before Settle, because no watch reports these triggers again. Settle calls it itself if
// necessary. GiveBack has no effect before Take and after Settle.
func (r *Run) GiveBack() { r.corrections.giveBack() }

// Apply applies desired objects to the item's target; see [apply.Engine.Apply]. It returns nil if everything is done.
// If objects are unfinished, it returns a [deployerlib.WaitFor], and the item is reconciled again when a watch reports
// a change. The deployer must return every error unchanged, because the error contains an error code.
func (r *Run) Apply(ctx context.Context, desired []apply.Desired, o apply.Options) (apply.Report, error) {
	r.Take()
	r.Cluster.watcher.Suspend(r.Item.UID)
	inventory, report, err := r.Cluster.Engine(r.Options(r.Cluster, o)).Apply(ctx, r.Owner, desired, r.Inventory)
	return report, r.Settle(ctx, inventory, report, err)
}

// Settle records the result of an engine or a Session, and calls Observe so that later drift is detected. It is meant
// for callers that use their own engine. Apply calls Settle itself. The caller must call Watcher.Suspend before the first
// write, because the watches also report intermediate states. The parameter `err` is the error of the engine. Settle
// returns nil if the next step may begin, and otherwise the same errors as Apply.
func (r *Run) Settle(ctx context.Context, inventory apply.Inventory, report apply.Report, err error) error {
	if err != nil {
		r.GiveBack()
	} else if r.corrections.settle() {
		r.corrections.report(r.Cluster, r.Event)
		r.Keeper.setCondition(r.Item, ConditionContested, lsv1alpha1.ConditionTrue, "ChangedAgain", r.corrections.contested())
	}
	if noteErr := r.Note(inventory); noteErr != nil {
		return noteErr
	}
	err = cmp.Or(err, r.Observe(ctx, report.Owned))
	switch {
	case err != nil:
		return r.ApplyError(err)
	case report.NotServed():
		return r.Wait("apply", 0, report.Reason(), r.ServedPause())
	case !report.Done():
		return r.Wait("apply", 0, report.Reason(), report.After())
	}
	return nil
}

// ServedPause returns the time after which an item that waits for a kind which the target does not serve is reconciled
// again. The time grows with the time that the item has waited.
func (r *Run) ServedPause() time.Duration {
	waited := r.item.waited("served", r.Keeper.rt.Clock.Now())
	return min(max(waited/4, minServedPause), maxServedPause)
}

// These constants limit the result of ServedPause.
const (
	minServedPause = 2 * time.Second
	maxServedPause = 30 * time.Second
)

// AfterDeployment sends the patches in apply.Desired.PatchAfterDeployment; see [apply.Engine.AfterDeployment]. Call it
// when the objects are ready, with the same desired objects as Apply. AfterDeployment returns the same errors as Apply.
func (r *Run) AfterDeployment(ctx context.Context, desired []apply.Desired, o apply.Options) error {
	if !slices.ContainsFunc(r.Inventory.Entries, func(entry apply.Entry) bool { return entry.PatchDue }) {
		return nil
	}
	r.Cluster.watcher.Suspend(r.Item.UID)
	inventory, report, err := r.Cluster.Engine(r.Options(r.Cluster, o)).AfterDeployment(ctx, r.Owner, desired, r.Inventory)
	return r.Settle(ctx, inventory, report, err)
}

// Delete deletes the item's objects, group by group, and then the remaining objects in former clusters (see Leave). If
// `groups` is nil, it uses the default groups. If `bound` is not 0 and the deletion takes longer, Delete returns a
// timeout error. Objects that belong to no group are not deleted. Delete reports them in an event. When all other
// objects are gone, Delete removes the item from memory and returns nil. Otherwise it returns the same errors as Apply.
func (r *Run) Delete(ctx context.Context, o apply.Options, groups []apply.Group, bound time.Duration) error {
	if err := r.collectUnknown(ctx, nil); err != nil {
		return err
	}
	r.Cluster.watcher.Forget(r.Item.UID)
	inventory, report, err := r.Cluster.Engine(r.Options(r.Cluster, o)).Delete(ctx, r.Owner, r.Inventory, groups)
	if noteErr := r.Note(inventory); noteErr != nil {
		return noteErr
	}
	switch {
	case err != nil:
		return r.ApplyError(err)
	case report.NotServed():
		return r.Wait("delete", bound, report.Reason(), r.ServedPause())
	case !report.Done():
		return r.Wait("delete", bound, report.Reason(), report.After())
	}
	for _, left := range report.Left {
		r.Event(related(left), corev1.EventTypeWarning, "Left", left.String()+" is not deleted, because no deletion group selects it")
	}
	if err := r.Leave(ctx, o, ownGroups(groups)); err != nil {
		return err
	}
	r.Keeper.Forget(r.Item.UID)
	return nil
}

// ownGroups returns the groups that delete only objects of the item itself, in the item's own target.
func ownGroups(groups []apply.Group) []apply.Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g apply.Group) bool { return g.DeleteAll || g.Cluster != nil })
}

// These constants are the times after which a waiting item is reconciled even if no watch has reported a change.
const (
	pollWatched   = 30 * time.Second
	pollUnwatched = 5 * time.Second
)

// Poll returns the time after which the item's objects must be read again if no watch reports a change. Pass it to Wait
// as the last argument. The time is shorter if some objects cannot be watched.
func (r *Run) Poll() time.Duration {
	if r.unwatched {
		return pollUnwatched
	}
	return pollWatched
}

// Wait returns an error that makes the item wait. The item is reconciled again when a watch reports a change of one of
// its objects, but at most once per second. If no watch reports a change, it is reconciled again after the time
// `after`. Before Connect, nothing is watched. The parameter `reason` describes what the step is waiting for. If
// `bound` is not 0 and the step has waited longer than `bound` in this run, Wait returns a timeout error instead, which
// contains the name of the step.
func (r *Run) Wait(step string, bound time.Duration, reason string, after time.Duration) error {
	if waited := r.item.waited(step, r.Keeper.rt.Clock.Now()); bound > 0 {
		if waited >= bound {
			r.item.ended()
			return timeoutError(step, bound, reason)
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

// Finished records that the run is done. It resets the waiting times, stops following changes of the objects, and sets or
// removes the condition ReadinessUnknown.
func (r *Run) Finished() {
	r.item.stopFollowing()
	r.item.triggers.Reschedule() // drift that was queued during the wait has no timer yet
	r.item.ended()
	if r.Item.Status.JobID == "" {
		r.item.beginAnew() // a job may run again under the same ID if its end could not be stored
	}
	r.reportGuesses()
	r.item.ready.keep(r.Inventory.Entries)
}

// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Apply applies desired objects to the item's target; see [apply.Engine.Apply]. It returns nil if everything is done.
// If objects are not finished, it returns a [deployerlib.WaitFor], and the item comes back when a watch reports a
// change. Return any error unchanged, because it has its code.
func (r *Run) Apply(ctx context.Context, desired []apply.Desired, o apply.Options) (apply.Report, error) {
	r.Take()
	r.Hold()
	inventory, report, err := r.Engine(r.Cluster, o).Apply(ctx, r.Owner, desired, r.Inventory)
	return report, r.Settle(ctx, inventory, report, err)
}

// Hold stops judging the item's objects until Observe or Settle, because watches see intermediate states while the
// objects are written. Apply, AfterDeployment and Delete call it themselves.
func (r *Run) Hold() { r.Cluster.watcher.Hold(r.Item.UID) }

// Settle records the result of an engine or a Session, watches the objects as they are now, and reports whether the
// next step may begin. It is the second half of Apply, for callers of an engine; err is the error of the engine. It
// returns the same as Apply.
func (r *Run) Settle(ctx context.Context, inventory apply.Inventory, report apply.Report, err error) error {
	if err != nil {
		r.giveBack() // no watch reports it again
	} else {
		r.reportTaken()
	}
	if noteErr := r.Note(inventory); noteErr != nil {
		return noteErr
	}
	if watchErr := r.Observe(ctx, report.Owned); watchErr != nil && err == nil {
		err = watchErr
	}
	switch {
	case err != nil:
		return r.ApplyError(err)
	case !report.Done():
		return r.Wait("apply", 0, report.Reason(), report.After())
	}
	return nil
}

// PatchDue reports whether AfterDeployment has something to send.
func (r *Run) PatchDue() bool {
	for _, entry := range r.Inventory.Entries {
		if entry.PatchDue {
			return true
		}
	}
	return false
}

// AfterDeployment sends the patches that wait for everything else; see [apply.Engine.AfterDeployment]. desired is the
// argument of Apply. AfterDeployment returns the same as Apply.
func (r *Run) AfterDeployment(ctx context.Context, desired []apply.Desired, o apply.Options) error {
	if !r.PatchDue() {
		return nil
	}
	r.Hold()
	inventory, report, err := r.Engine(r.Cluster, o).AfterDeployment(ctx, r.Owner, desired, r.Inventory)
	return r.Settle(ctx, inventory, report, err)
}

// Delete removes the item's objects, group by group. If groups is nil, it uses the default. A deletion that takes
// longer than bound fails, unless bound is 0. Then Delete removes what is left in former clusters; see Leave. It
// returns nil if all objects are gone except those that no group names, which it reports in an event; the item is
// then forgotten. Errors are the same as for Apply.
func (r *Run) Delete(ctx context.Context, o apply.Options, groups []apply.Group, bound time.Duration) error {
	r.Cluster.watcher.Forget(r.Item.UID)
	inventory, report, err := r.Engine(r.Cluster, o).Delete(ctx, r.Owner, r.Inventory, groups)
	if noteErr := r.Note(inventory); noteErr != nil {
		return noteErr
	}
	switch {
	case err != nil:
		return r.ApplyError(err)
	case !report.Done():
		return r.Wait("delete", bound, report.Reason(), report.After())
	}
	for _, left := range report.Left {
		r.Event(related(left), corev1.EventTypeWarning, "Left", left.String()+" stays: no deletion group names it")
	}
	if err := r.Leave(ctx, o, ownGroups(groups)); err != nil {
		return err
	}
	r.Forget(r.Item.UID)
	return nil
}

// ownGroups returns the groups that only delete objects of the item, in its own target.
func ownGroups(groups []apply.Group) []apply.Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g apply.Group) bool { return g.DeleteAll || g.Cluster != nil })
}

// These are the times after which a waiting item is looked at although no watch reported a change.
const (
	pollWatched   = 30 * time.Second
	pollUnwatched = 5 * time.Second
)

// Poll returns when to look again at the item's objects if no watch reports a change before, for the last parameter
// of Wait. The time is shorter if some objects cannot be watched.
func (r *Run) Poll() time.Duration {
	if r.unwatched {
		return pollUnwatched
	}
	return pollWatched
}

// Wait returns an error that makes the item come back when a watch reports a change of one of its objects, at most
// once per second, and after a while at the latest. Before Connect, nothing is watched. If the step has waited longer
// than bound in this run, Wait returns a timeout, unless bound is 0. step names the step in that error, and reason
// says what is missing.
func (r *Run) Wait(step string, bound time.Duration, reason string, after time.Duration) error {
	if waited := r.item.waited(step, r.rt.Clock.Now()); bound > 0 {
		if waited >= bound {
			r.item.ended()
			return timeoutError(step, bound, reason)
		}
		after = min(after, bound-waited)
	}
	r.item.throttle.waitsFor(reason)
	if r.Cluster != nil {
		began := r.item.startFollowing(func() func() {
			return r.Cluster.watcher.Follow(r.Item.UID, func(watch.Object) { r.item.throttle.event() })
		})
		if began && r.missed() {
			r.item.throttle.event()
		}
	}
	return deployerlib.WaitFor(reason, after)
}

// Finished ends all waiting. Call it when a run is done.
func (r *Run) Finished() {
	r.item.stopFollowing()
	r.item.reschedule() // drift that was queued during the wait has no alarm
	r.item.ended()
	if r.Item.Status.JobID == "" {
		r.item.beginAnew() // a job with an ID may come again if its end could not be stored
	}
	r.item.keepReady(r.Inventory)
}

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

// Apply brings desired objects to the item's target; see [apply.Engine.Apply].
// nil: all is done. A [deployerlib.WaitFor] waits for what is not, and the item
// comes back when a watch says that something changed. Return any error: it has
// its code.
func (r *Run) Apply(ctx context.Context, desired []apply.Desired, o apply.Options) (apply.Report, error) {
	r.Take()
	r.Hold()
	inventory, report, err := r.Engine(r.Cluster, o).Apply(ctx, r.Owner, desired, r.Inventory)
	return report, r.Settle(ctx, inventory, report, err)
}

// Hold stops the judging of the item's objects until Observe or Settle: while
// they are written, watches see states in between. Apply, AfterDeployment and
// Delete do it themselves.
func (r *Run) Hold() { r.Cluster.watcher.Hold(r.Item.UID) }

// Settle notes what an engine or a Session came to, watches what is there now,
// and says whether the next step may begin. It is the second half of Apply, for
// callers of an engine; err is that of the engine. The result is that of Apply.
func (r *Run) Settle(ctx context.Context, inventory apply.Inventory, report apply.Report, err error) error {
	if err != nil {
		r.giveBack() // no watch tells of it again
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

// PatchDue tells whether AfterDeployment has something to send.
func (r *Run) PatchDue() bool {
	for _, entry := range r.Inventory.Entries {
		if entry.PatchDue {
			return true
		}
	}
	return false
}

// AfterDeployment sends the patches that wait for all else; see
// [apply.Engine.AfterDeployment]. desired is what Apply got. The result is that
// of Apply.
func (r *Run) AfterDeployment(ctx context.Context, desired []apply.Desired, o apply.Options) error {
	if !r.PatchDue() {
		return nil
	}
	r.Hold()
	inventory, report, err := r.Engine(r.Cluster, o).AfterDeployment(ctx, r.Owner, desired, r.Inventory)
	return r.Settle(ctx, inventory, report, err)
}

// Delete removes the item's objects, group by group; nil groups: the default. A
// deletion that takes longer than bound fails, 0 is no bound. nil: all are gone
// but those that no group names, which an event tells, and the item is
// forgotten. After them it deletes what is left in former clusters; see Leave. Errors are as with Apply.
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

// ownGroups are the groups that only delete objects of the item, in its own target.
func ownGroups(groups []apply.Group) []apply.Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g apply.Group) bool { return g.DeleteAll || g.Cluster != nil })
}

// Times after which a waiting item is looked at although no watch said so.
const (
	pollWatched   = 30 * time.Second
	pollUnwatched = 5 * time.Second
)

// Poll is when to look again at the item's objects if no watch says so before:
// sooner when some cannot be watched. For the last parameter of Wait.
func (r *Run) Poll() time.Duration {
	if r.unwatched {
		return pollUnwatched
	}
	return pollWatched
}

// Wait is what to return to come back when a watch says that an object of the
// item changed, at most once per second, and at the latest after a while. Before Connect nothing is watched. A step that waited longer in this
// run than its bound fails with a timeout; 0 is no bound. step names the step in
// that error, reason what is missing.
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

// Finished says that nothing is waited for any more. Call it when a run is done.
func (r *Run) Finished() {
	r.item.stopFollowing()
	r.item.reschedule() // following took care of what was queued
	r.item.ended()
	if r.Item.Status.JobID == "" {
		r.item.beginAnew() // a job with an ID may come once more, if its end could not be stored
	}
	r.item.keepReady(r.Inventory)
}

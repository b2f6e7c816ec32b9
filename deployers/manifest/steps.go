// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Times after which a waiting item is looked at although no watch said so.
const (
	pollWatched   = 30 * time.Second
	pollUnwatched = 5 * time.Second
)

// reconcile goes through the steps of a deployment. Each is done, fails, or
// waits: then the item comes back when a watch says that something changed.
func (r *run) reconcile(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.apply,
		r.awaitReady,
		r.awaitChecks,
		r.export,
		r.patchAfterDeployment,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.item.stopFollowing()
	r.item.ended()
	return nil
}

// apply brings the manifests to the cluster.
func (r *run) apply(ctx context.Context) error {
	desired, err := r.config.Desired()
	if err != nil {
		return err
	}
	groups, err := r.groups(ctx, "deletionGroupsDuringUpdate", r.config.DeletionGroupsDuringUpdate)
	if err != nil {
		return err
	}
	drifts, thorough := r.item.takeDrifts(), r.item.takeThorough()
	r.cluster.watcher.Hold(r.di.UID)
	inventory, report, err := r.engine(r.cluster, groups, thorough).Apply(ctx, r.owner, desired, r.inventory)
	if err != nil {
		r.item.putBack(drifts, thorough) // no watch tells of them again
	} else {
		r.reportDrifts(drifts)
	}
	return r.settle(ctx, inventory, report, err)
}

// settle stores what a call of the engine came to, watches what is there now,
// and says whether the next step may begin.
func (r *run) settle(ctx context.Context, inventory apply.Inventory, report apply.Report, err error) error {
	if noteErr := r.note(inventory); noteErr != nil {
		return noteErr
	}
	if watchErr := r.observe(ctx, report.Owned); watchErr != nil && err == nil {
		err = watchErr
	}
	switch {
	case err != nil:
		return r.applyError(err)
	case !report.Done():
		return r.wait("apply", 0, report.Reason(), report.After())
	}
	return nil
}

// patchAfterDeployment sends the patches that wait for all else.
func (r *run) patchAfterDeployment(ctx context.Context) error {
	due := false
	for _, entry := range r.inventory.Entries {
		due = due || entry.PatchDue
	}
	if !due {
		return nil
	}
	desired, err := r.config.Desired()
	if err != nil {
		return err
	}
	r.cluster.watcher.Hold(r.di.UID)
	inventory, report, err := r.engine(r.cluster, nil, false).AfterDeployment(ctx, r.owner, desired, r.inventory)
	return r.settle(ctx, inventory, report, err)
}

// wait comes back when a watch says that an object of the item changed, at the
// latest after a while. A step that waited longer than its bound fails.
func (r *run) wait(step string, bound time.Duration, reason string, after time.Duration) error {
	if waited := r.item.waited(step, r.rt.Clock.Now()); bound > 0 {
		if waited >= bound {
			r.item.ended()
			return timeoutError(step, bound, reason)
		}
		after = min(after, bound-waited)
	}
	r.item.startFollowing(func() func() {
		return r.cluster.watcher.Follow(r.di.UID, func(watchedObject) { r.rt.Trigger(r.item.key) })
	})
	return deployerlib.WaitFor(reason, after)
}

// Delete removes the item's objects.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.openRun(ctx, di)
	if err != nil {
		return err
	}
	if r.config, err = Decode(di, d.options); err != nil {
		r.config = nil
		d.event(di, nil, corev1.EventTypeWarning, "InvalidConfiguration", "deleted in the default order: "+oneLine(err.Error()))
	}
	if len(r.inventory.Entries) == 0 && !r.deletesAll() {
		d.items.forget(di.UID)
		return nil
	}
	if err := r.connect(ctx, target); err != nil {
		return err
	}
	return r.delete(ctx)
}

// delete is Delete with the target at hand.
func (r *run) delete(ctx context.Context) error {
	var groups []apply.Group
	if r.config != nil {
		var err error
		if groups, err = r.groups(ctx, "deletionGroups", r.config.DeletionGroups); err != nil {
			return err
		}
	}
	r.cluster.watcher.Forget(r.di.UID)
	inventory, report, err := r.engine(r.cluster, nil, false).Delete(ctx, r.owner, r.inventory, groups)
	if noteErr := r.note(inventory); noteErr != nil {
		return noteErr
	}
	switch {
	case err != nil:
		return r.applyError(err)
	case !report.Done():
		return r.wait("delete", r.deleteTimeout(), report.Reason(), report.After())
	}
	for _, left := range report.Left {
		r.event(r.di, related(left), corev1.EventTypeWarning, "Left", left.String()+" stays: no deletion group names it")
	}
	r.items.forget(r.di.UID)
	return nil
}

func (r *run) deleteTimeout() time.Duration {
	if r.config == nil {
		return 0
	}
	return r.config.DeleteTimeout
}

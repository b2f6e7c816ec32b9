// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
)

// reconcile goes through the steps of a deployment. Each step is done, fails, or waits. If it waits, the next run
// starts when a watch reports a change.
func (r *run) reconcile(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.apply,
		r.awaitReady,
		r.awaitChecks,
		r.export,
		r.patchAfterDeployment,
		r.cleanUp,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.up.Finished()
	return nil
}

// apply applies the manifests to the cluster.
func (r *run) apply(ctx context.Context) error {
	desired, err := r.config.Desired()
	if err != nil {
		return err
	}
	if err := r.recoverDesired(ctx, desired); err != nil {
		return err
	}
	groups, err := r.groups(ctx, "deletionGroupsDuringUpdate", r.config.DeletionGroupsDuringUpdate)
	if err != nil {
		return err
	}
	if err := r.leaveFirst(ctx); err != nil {
		return err
	}
	_, err = r.up.Apply(ctx, desired, r.engineOptions(groups))
	return err
}

// leaveFirst waits until the objects in former clusters are deleted, if the options ask for that.
func (r *run) leaveFirst(ctx context.Context) error {
	groups, err := r.formerGroups(ctx)
	if err != nil {
		return err
	}
	return r.up.LeaveFirst(ctx, r.engineOptions(nil), groups)
}

// cleanUp deletes the objects in former clusters, as far as that is possible now.
func (r *run) cleanUp(ctx context.Context) error {
	groups, err := r.formerGroups(ctx)
	if err != nil {
		return err
	}
	_, err = r.up.CleanUp(ctx, r.engineOptions(nil), groups)
	return err
}

// awaitReady waits until all objects of the item are ready.
func (r *run) awaitReady(ctx context.Context) error {
	if r.config.DisableDefaultReadiness {
		return nil
	}
	return r.up.AwaitReady(ctx, r.config.ReadinessTimeout)
}

// patchAfterDeployment sends the patches that wait for everything else.
func (r *run) patchAfterDeployment(ctx context.Context) error {
	if !r.up.PatchDue() {
		return nil
	}
	desired, err := r.config.Desired()
	if err != nil {
		return err
	}
	return r.up.AfterDeployment(ctx, desired, r.engineOptions(nil))
}

// Delete removes the item's objects.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.openRun(ctx, di)
	if err != nil {
		return err
	}
	if r.config, err = Decode(di, d.options); err != nil {
		r.config = nil
		r.up.Event(nil, corev1.EventTypeWarning, "InvalidConfiguration", "deleted in the default order: "+oneLine(err.Error()))
	}
	recovers := r.config != nil && len(r.config.Manifests) > 0 && target != nil && r.up.LostInventory()
	if len(r.up.Inventory.Entries)+len(r.up.Inventory.Former) == 0 && !r.deletesAll() && !recovers {
		r.up.Forget(di.UID)
		return nil
	}
	if err := r.up.Connect(ctx, target); err != nil {
		return err
	}
	if recovers {
		if err := r.recover(ctx); err != nil {
			return err
		}
	}
	return r.delete(ctx)
}

// recover finds the objects of an item whose inventory was lost.
func (r *run) recover(ctx context.Context) error {
	desired, err := r.config.Desired()
	if err != nil {
		return err
	}
	return r.recoverDesired(ctx, desired)
}

// recoverDesired does the work of recover for the manifests that the item has now. Their policies are stored with
// the objects.
func (r *run) recoverDesired(ctx context.Context, desired []apply.Desired) error {
	wanted := map[identity]apply.Desired{}
	for _, d := range desired {
		wanted[identityOf(d.Object)] = d
	}
	return r.up.Recover(ctx, kindsOf(desired), func(entry *apply.Entry, _ metav1.Object) {
		id := identity{group: entry.Ref().GVK().Group, kind: entry.Kind, namespace: entry.Namespace, name: entry.Name}
		if d, found := wanted[id]; found {
			entry.Policy, entry.AnnotateBeforeDelete, entry.PatchBeforeDelete = policyOf(d), d.AnnotateBeforeDelete, d.PatchBeforeDelete
		}
	})
}

// policyOf returns the policy as an inventory stores it.
func policyOf(d apply.Desired) apply.Policy {
	if d.Policy == apply.Manage {
		return ""
	}
	return d.Policy
}

// kindsOf returns the kinds of manifests, with the namespaces of their objects.
func kindsOf(desired []apply.Desired) map[schema.GroupVersionKind]map[string]bool {
	out := map[schema.GroupVersionKind]map[string]bool{}
	for _, d := range desired {
		gvk := d.Object.GroupVersionKind()
		if out[gvk] == nil {
			out[gvk] = map[string]bool{}
		}
		out[gvk][d.Object.GetNamespace()] = true
	}
	return out
}

// delete does the work of Delete with an open target.
func (r *run) delete(ctx context.Context) error {
	var groups []apply.Group
	if r.config != nil {
		var err error
		if groups, err = r.groups(ctx, "deletionGroups", r.config.DeletionGroups); err != nil {
			return err
		}
	}
	return r.up.Delete(ctx, r.engineOptions(nil), groups, r.deleteTimeout())
}

func (r *run) deleteTimeout() time.Duration {
	if r.config == nil {
		return 0
	}
	return r.config.DeleteTimeout
}

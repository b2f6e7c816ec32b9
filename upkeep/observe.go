// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
)

// ConditionDriftDetection is the type of a condition of items for which changes by other clients are not detected
// immediately. The message explains why. Other items do not have this condition.
const ConditionDriftDetection lsv1alpha1.ConditionType = "DriftDetection"

// Observe watches the objects in the inventory in order to detect drift (changes by other writers). The parameter
// `owned` contains the states of the objects after the item's last writes. The watches compare later states with these
// states. Observe writes nothing to the target. Settle calls Observe itself.
//
// If the target forbids watching a kind, Observe sets the condition DriftDetection in memory and returns no error. It
// returns an error if a kind cannot be watched for a temporary reason.
func (r *Run) Observe(ctx context.Context, owned []apply.Owned) error {
	unwatched, failed := "", error(nil)
	for resource, namespaces := range resources(r.Cluster, r.Inventory.Entries) {
		coverage, err := r.Cluster.watcher.Watch(ctx, resource, namespaces...)
		if err != nil {
			failed = fmt.Errorf("watch %s: %w", resource.GroupResource(), err)
		}
		if !coverage.Complete() {
			unwatched = "changes by other writers are not detected immediately: " + oneLine(fmt.Sprintf("%s: %s", resource.GroupResource(), coverage.Reason))
		}
	}
	r.unwatched = unwatched != ""
	r.Keeper.setCondition(r.Item, ConditionDriftDetection, lsv1alpha1.ConditionFalse, "NotWatched", unwatched)
	r.Cluster.watcher.Expect(r.Item.UID, Expected(owned)) // also called after an error, because the watches report no drift before this call
	return failed
}

// resources returns the resources of the objects in an inventory and, for each resource, the namespaces of its objects.
// It contains a namespace once for each object. It omits kinds that the cluster does not serve.
func resources(at *Cluster, entries []apply.Entry) map[schema.GroupVersionResource][]string {
	out := map[schema.GroupVersionResource][]string{}
	for _, entry := range entries {
		mapping, err := at.Mapping(entry.Ref().GVK())
		if entry.UID == "" || err != nil || mapping == nil {
			continue
		}
		out[mapping.Resource] = append(out[mapping.Resource], entry.Namespace)
	}
	return out
}

// Resume watches the objects of a finished item. It also detects drift that occurred before the process was started.
// Call it in Deployer.Resume. It writes nothing. If `target` is nil or the inventory is empty, it watches nothing. It
// returns the errors of Connect and Observe.
func (r *Run) Resume(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if len(r.Inventory.Former) > 0 {
		r.item.queue.wake(r.Keeper.rt.Clock.Now())
	}
	if target == nil || len(r.Inventory.Entries) == 0 {
		return nil
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	return r.Observe(ctx, r.Cluster.Engine(r.Options(r.Cluster, apply.Options{})).Owned(r.Inventory))
}

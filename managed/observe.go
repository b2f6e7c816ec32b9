// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
)

// ConditionDriftDetection is the type of a condition of items for which changes by other clients are not detected
// immediately. The message explains why. Other items do not have this condition.
const ConditionDriftDetection lsv1alpha1.ConditionType = "DriftDetection"

// WatchInventory watches the objects in the inventory in order to detect drift (changes by other writers). The states
// of the objects after the item's last writes are in owned. The watches compare later states with these states.
// WatchInventory writes nothing to the target. RecordResult calls WatchInventory itself.
//
// If a kind cannot be watched, WatchInventory sets the condition DriftDetection in memory, and requests another run,
// which tries again: soon, or after ten minutes if the target does not allow the watch. WatchInventory returns an error
// only if ctx ends.
func (r *Run) WatchInventory(ctx context.Context, owned []observe.BaselineObject) error {
	for _, one := range owned {
		if one.ResourceVersion != "" {
			r.Cluster.watcher.MarkServed(one.Object.Resource)
		}
	}
	failed := error(nil)
	watched, unserved := listResources(r.Cluster, r.Inventory.Entries)
	unwatched, again, refused := "", len(unserved) > 0, false
	for _, reason := range unserved {
		unwatched = reason
	}
	for resource, namespaces := range watched {
		coverage, err := r.Cluster.watcher.Watch(ctx, resource, namespaces...)
		if err != nil {
			failed = fmt.Errorf("watch %s: %w", resource.GroupResource(), err)
		}
		if !coverage.IsComplete() {
			unwatched = fmt.Sprintf("%s: %s", resource.GroupResource(), coverage.Message)
			again, refused = again || !coverage.Refused, refused || coverage.Refused
		}
	}
	if r.hasUnwatchedKind = unwatched != ""; r.hasUnwatchedKind {
		unwatched = "changes by other writers are not detected immediately: " + oneLine(unwatched)
	}
	switch pause := r.item.triggers.AdvanceWatchRetry(again); {
	case again:
		r.item.triggers.Request(r.Manager.rt.Clock.Now().Add(pause))
	case refused:
		r.item.triggers.Request(r.Manager.rt.Clock.Now().Add(refusedWatchRetry))
	}
	r.Manager.setCondition(r.Item, ConditionDriftDetection, lsv1alpha1.ConditionFalse, "NotWatched", unwatched)
	r.Cluster.watcher.SetBaseline(r.Item.UID, owned) // also called after an error, because the watches report no drift before this call
	if r.setUnknownObjects(); r.setKnownObjects(true) {
		r.Manager.clusters.handleUnknownObject(r.Item.UID)
	}
	return failed
}

// listResources returns the resources of the objects in an inventory and, for each resource, the namespaces of its
// objects. It contains a namespace once for each object. For the kinds that the cluster does not serve, listResources
// returns the reasons.
func listResources(at *Cluster, entries []apply.Entry) (served map[schema.GroupVersionResource][]string, unserved map[schema.GroupKind]string) {
	served, unserved = map[schema.GroupVersionResource][]string{}, map[schema.GroupKind]string{}
	for _, entry := range entries {
		gvk := entry.Ref().GVK()
		if entry.UID == "" || unserved[gvk.GroupKind()] != "" {
			continue
		}
		resource, err := at.FindResource(entry.Ref())
		if err != nil {
			unserved[gvk.GroupKind()] = apply.DescribeUnserved(gvk, err)
			continue
		}
		served[resource] = append(served[resource], entry.Namespace)
	}
	return served, unserved
}

// refusedWatchRetry is the time until an item tries again to watch a kind that the target does not allow it to watch.
const refusedWatchRetry = 10 * time.Minute

// StartWatches watches the objects of a finished item. It also detects drift that occurred before the process was
// started. Call it in Deployer.Resume. It writes nothing. If `target` is nil or the inventory is empty, it watches
// nothing. It returns the errors of Connect and WatchInventory.
func (r *Run) StartWatches(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if len(r.Inventory.Former) > 0 {
		r.item.triggers.Request(r.Manager.rt.Clock.Now())
	}
	if target == nil || len(r.Inventory.Entries) == 0 {
		return nil
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	return r.WatchInventory(ctx, r.Cluster.NewEngine(r.CompleteOptions(r.Cluster, apply.Options{})).ListOwned(r.Inventory))
}

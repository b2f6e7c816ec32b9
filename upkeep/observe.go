// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/contract"
)

// ConditionDriftDetection explains why changes by others are not seen at once. It exists only if they are not.
const ConditionDriftDetection lsv1alpha1.ConditionType = "DriftDetection"

// Observe watches all kinds of the inventory, and sets how the objects were left as what the watches expect. From
// then on, drift is seen. Objects that are not in owned may change. The condition DriftDetection shows what cannot be
// watched, in memory. Observe changes nothing in the target. Settle calls it already. It returns an error if a kind
// cannot be watched now; a forbidden watch is not an error.
func (r *Run) Observe(ctx context.Context, owned []apply.Owned) error {
	unwatched, failed := "", error(nil)
	for resource, namespaces := range r.resources() {
		coverage, err := r.Cluster.watcher.Watch(ctx, resource, slices.Sorted(maps.Keys(namespaces))...)
		if err != nil {
			failed = fmt.Errorf("watch %s: %w", resource.GroupResource(), err)
		}
		if coverage.Scope == watch.None || len(coverage.Missing) > 0 {
			unwatched = fmt.Sprintf("%s: %s", resource.GroupResource(), coverage.Reason)
		}
	}
	r.tellUnwatched(unwatched)
	r.Cluster.watcher.Expect(r.Item.UID, Expected(owned)) // even after an error, because nothing is judged before this call
	return failed
}

// tellUnwatched shows in a condition what cannot be watched.
func (r *Run) tellUnwatched(reason string) {
	conditions := &r.Item.Status.Conditions
	if r.unwatched = reason != ""; !r.unwatched {
		*conditions = contract.RemoveCondition(*conditions, ConditionDriftDetection)
		return
	}
	*conditions = contract.SetCondition(*conditions, ConditionDriftDetection, lsv1alpha1.ConditionFalse, "NotWatched",
		"changes by others are not seen at once: "+oneLine(reason), r.rt.Clock.Now())
}

// resources returns the kinds of the inventory with the namespaces of their objects. It leaves out kinds that the
// cluster does not know (any more).
func (r *Run) resources() map[schema.GroupVersionResource]map[string]bool {
	out := map[schema.GroupVersionResource]map[string]bool{}
	for _, entry := range r.Inventory.Entries {
		mapping, err := r.Cluster.Mapping(entry.Ref().GVK())
		if entry.UID == "" || err != nil || mapping == nil {
			continue
		}
		if out[mapping.Resource] == nil {
			out[mapping.Resource] = map[string]bool{}
		}
		if entry.Namespace != "" {
			out[mapping.Resource][entry.Namespace] = true
		}
	}
	return out
}

// Resume watches the objects of a finished item in its target, so that drift from before the process started is seen.
// It is for Deployer.Resume, and writes nothing. Without a target or an inventory it does nothing. It returns the
// errors of Connect and Observe.
func (r *Run) Resume(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if len(r.Inventory.Former) > 0 {
		r.item.wake(r.rt.Clock.Now())
	}
	if target == nil || len(r.Inventory.Entries) == 0 {
		return nil
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	return r.Observe(ctx, r.Engine(r.Cluster, apply.Options{}).Owned(r.Inventory))
}

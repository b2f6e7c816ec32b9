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

// ConditionDriftDetection tells whether changes by others are seen at once. It
// is there only when they are not, with the reason.
const ConditionDriftDetection lsv1alpha1.ConditionType = "DriftDetection"

// Observe watches all kinds of the inventory, and tells the watches how the
// objects were left; from then on drift is seen. Objects that are not in owned
// are not expected to stay as they are. What cannot be watched is told by the
// condition DriftDetection, in memory. It changes nothing in the target. Settle
// does it already.
// Errors: a kind cannot be watched now; what is forbidden is no error.
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
	r.Cluster.watcher.Expect(r.Item.UID, Expected(owned)) // also after an error: until then nothing is judged
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

// resources are the kinds of the inventory with the namespaces of their objects.
// Kinds that the cluster does not know (any more) are left out.
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

// Resume watches what a finished item has in its target, so that drift is seen
// that happened before the process started. For Deployer.Resume: it writes
// nothing. Without target or inventory there is nothing to do.
// Errors: those of Connect and Observe.
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

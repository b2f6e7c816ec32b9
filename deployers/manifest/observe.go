// SPDX-License-Identifier: Apache-2.0

package manifest

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

type watchedObject = watch.Object

// ConditionDriftDetection tells whether changes by others are seen at once. It
// is there only when they are not, with the reason.
const ConditionDriftDetection lsv1alpha1.ConditionType = "DriftDetection"

// observe watches all kinds of the inventory, and tells the watches how the
// objects were left. Objects that are not server-side applied are not expected
// to stay: they heal by job and schedule only. It changes nothing.
func (r *run) observe(ctx context.Context, owned []apply.Owned) error {
	unwatched, failed := "", error(nil)
	for resource, namespaces := range r.resources() {
		coverage, err := r.cluster.watcher.Watch(ctx, resource, slices.Sorted(maps.Keys(namespaces))...)
		if err != nil {
			failed = fmt.Errorf("watch %s: %w", resource.GroupResource(), err)
		}
		if coverage.Scope == watch.None || len(coverage.Missing) > 0 {
			unwatched = fmt.Sprintf("%s: %s", resource.GroupResource(), coverage.Reason)
		}
	}
	r.tellUnwatched(unwatched)
	expected := make([]watch.Expected, 0, len(owned))
	for _, o := range owned {
		expected = append(expected, watch.Expected{
			Object: watch.Object{Resource: o.Resource, NamespacedName: o.Name}, UID: o.UID, Key: o.Key, ResourceVersion: o.ResourceVersion,
		})
	}
	r.cluster.watcher.Expect(r.di.UID, expected) // also after an error: until then nothing is judged
	return failed
}

// tellUnwatched shows in a condition what cannot be watched.
func (r *run) tellUnwatched(reason string) {
	conditions := &r.di.Status.Conditions
	if r.unwatched = reason != ""; !r.unwatched {
		*conditions = contract.RemoveCondition(*conditions, ConditionDriftDetection)
		return
	}
	*conditions = contract.SetCondition(*conditions, ConditionDriftDetection, lsv1alpha1.ConditionFalse, "NotWatched",
		"changes by others are not seen at once: "+oneLine(reason), r.rt.Clock.Now())
}

// resources are the kinds of the inventory with the namespaces of their objects.
// Kinds that the cluster does not know (any more) are left out.
func (r *run) resources() map[schema.GroupVersionResource]map[string]bool {
	out := map[schema.GroupVersionResource]map[string]bool{}
	for _, entry := range r.inventory.Entries {
		mapping, err := r.cluster.mapping(entry.Ref().GVK())
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
// that happened before the process started.
func (d *deployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		return nil
	}
	r, err := d.openRun(ctx, di)
	if err != nil || len(r.inventory.Entries) == 0 {
		return err
	}
	if err := r.connect(ctx, target); err != nil {
		return err
	}
	return r.observe(ctx, r.engine(r.cluster, nil, false).Owned(r.inventory))
}

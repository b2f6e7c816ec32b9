// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/contract"
)

type watchedObject = watch.Object

// ConditionDriftDetection tells whether changes by others are seen at once. It
// is there only when they are not, with the reason.
const ConditionDriftDetection lsv1alpha1.ConditionType = "DriftDetection"

// observe watches all kinds of the inventory, and tells the watches what to
// expect. It changes nothing.
func (r *run) observe(ctx context.Context, report apply.Report) error {
	maps.Copy(r.item.written, report.Versions)
	resources, err := r.resources()
	if err != nil {
		return err
	}
	unwatched := ""
	for resource, namespaces := range resources.namespaces {
		coverage, err := r.cluster.watcher.Watch(ctx, resource, slices.Sorted(maps.Keys(namespaces))...)
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource.GroupResource(), err)
		}
		if coverage.Scope == watch.None || len(coverage.Missing) > 0 {
			unwatched = fmt.Sprintf("%s: %s", resource.GroupResource(), coverage.Reason)
		}
	}
	r.tellUnwatched(unwatched)
	r.cluster.watcher.Expect(r.di.UID, resources.expected)
	return nil
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

// resources are the kinds and objects of an inventory, as watches see them.
type resources struct {
	namespaces map[schema.GroupVersionResource]map[string]bool
	expected   []watch.Expected
}

// resources maps the inventory. Kinds that the cluster does not know (any more)
// are left out.
func (r *run) resources() (resources, error) {
	out := resources{namespaces: map[schema.GroupVersionResource]map[string]bool{}}
	for _, entry := range r.inventory.Entries {
		if entry.UID == "" {
			continue
		}
		ref := entry.Ref()
		mapping, err := r.cluster.RESTMapper().RESTMapping(ref.GVK().GroupKind(), ref.GVK().Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("find %s: %w", ref.GVK(), err)
		}
		if out.namespaces[mapping.Resource] == nil {
			out.namespaces[mapping.Resource] = map[string]bool{}
		}
		if ref.Namespace != "" {
			out.namespaces[mapping.Resource][ref.Namespace] = true
		}
		if entry.Key == "" { // other strategies and policies heal by job and schedule only
			continue
		}
		out.expected = append(out.expected, watch.Expected{
			Object: watch.Object{Resource: mapping.Resource, NamespacedName: ref.Key()},
			UID:    entry.UID, Key: entry.Key, ResourceVersion: r.item.written[ref],
		})
	}
	return out, nil
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
	return r.observe(ctx, apply.Report{})
}

// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// If the name or the namespace of the release changes in the configuration, the item gets a new release. The former
// release remains until the new one is deployed and ready, and is then uninstalled with its hooks.

// maxFormer limits the number of former releases of an item.
const maxFormer = 20

// checkFormer returns an error if the release of the configuration would replace too many others, none of which was
// uninstalled yet because each release after it failed.
func (r *run) checkFormer() error {
	if len(r.lastRelease().Former) > maxFormer {
		return newConfigError("name", "the item replaces more than %d releases that still exist: use the name of one of them until its deployment succeeds", maxFormer)
	}
	return nil
}

// storageOf returns the Storage for a former release.
func (r *run) storageOf(former FormerRelease) *release.Storage {
	return release.NewStorage(r.Managed.Cluster, former.Namespace, former.Name)
}

// retainFormer returns all objects of the item that the given objects do not contain, so that the apply engine leaves
// them unchanged. It returns nil if there is no former release.
func (r *run) retainFormer(desired []apply.Desired) []apply.Desired {
	if len(r.lastRelease().Former) == 0 {
		return nil
	}
	wanted := map[apply.Ref]bool{}
	for _, one := range desired {
		wanted[refOf(r.Managed.Cluster, one.Object)] = true
	}
	var out []apply.Desired
	for _, entry := range r.Managed.Inventory.Entries {
		if wanted[versionless(entry.Ref())] {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(entry.Ref().GVK())
		object.SetNamespace(entry.Namespace)
		object.SetName(entry.Name)
		out = append(out, apply.Desired{Object: object, Policy: apply.PolicyRetain})
	}
	return out
}

// formerObjects returns the objects of the former releases, as their last deployed revisions contain them.
func (r *run) formerObjects(ctx context.Context) ([]apply.Desired, error) {
	var out []apply.Desired
	for _, former := range r.lastRelease().Former {
		storage := r.storageOf(former)
		revisions, err := storage.List(ctx)
		if err != nil {
			return nil, err
		}
		deployed := lastDeployed(revisions)
		if deployed == nil {
			continue
		}
		record, err := storage.Get(ctx, deployed.Number)
		if err != nil {
			return nil, renderError(err)
		}
		objects, err := r.newChartRenderer().desiredOf(record)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// cleanUpReleases removes the releases that the item has replaced. If the item is still in Helm mode, it uninstalls them.
// Otherwise it only deletes their records, because the objects were deleted when the new objects were applied.
func (r *run) cleanUpReleases(ctx context.Context) error {
	for r.release != nil && len(r.release.Former) > 0 {
		former := r.release.Former[0]
		if r.config.HelmDeployment {
			if err := r.uninstallFormer(ctx, former); err != nil {
				return err
			}
		} else if err := deleteRecords(ctx, r.storageOf(former)); err != nil {
			return err
		}
		last := *r.release
		last.Former = last.Former[1:]
		if len(last.Former) == 0 {
			last.Former = nil
		}
		if err := r.setLastRelease(&last); err != nil {
			return err
		}
	}
	return nil
}

// uninstallFormer runs the operation that uninstalls a former release.
func (r *run) uninstallFormer(ctx context.Context, former FormerRelease) error {
	op := r.memory.operation
	if op == nil || op.replaced == nil || *op.replaced != former {
		var err error
		if op, err = r.newFormerUninstall(ctx, former); err != nil {
			return err
		}
		r.memory.operation = op
	}
	return r.continueOperation(ctx, op)
}

// newFormerUninstall returns the operation that uninstalls a former release. Objects that the current release contains
// remain.
func (r *run) newFormerUninstall(ctx context.Context, former FormerRelease) (*operation, error) {
	op := r.newOperation(kindUninstall, r.release.inputs, r.storageOf(former))
	op.settings.Timeout, op.replaced = r.config.Uninstall.Timeout, &former
	var err error
	if op.former, err = op.readLastRecord(ctx); err != nil {
		return nil, err
	}
	current, err := r.newHistory().storage().Get(ctx, r.release.Revision)
	if err != nil {
		return nil, renderError(err)
	}
	op.desired, err = r.newChartRenderer().desiredOf(current)
	return op, err
}

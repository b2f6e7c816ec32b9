// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// uninstall uninstalls the release of an item that is being deleted. It needs neither a valid configuration nor the
// chart, because the record contains the hooks.
func (r *run) uninstall(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		return nil // Run.Delete reports what remains
	}
	if err := r.Managed.Connect(ctx, target); err != nil {
		return err
	}
	if r.Config == nil {
		r.Config = &resources.Config{}
	}
	op := r.memory.operation
	if op != nil && (op.kind != kindUninstall || op.cause != nil || op.hasEnded()) {
		if err := op.writeFailure(ctx, r.now(), "the item is deleted"); err != nil {
			return err
		}
		r.endOperation(op)
		op = nil
	}
	if op == nil {
		var err error
		if op, err = r.newUninstall(ctx); err != nil {
			return err
		}
		r.memory.operation = op
	}
	if err := r.continueOperation(ctx, op); err != nil {
		return err
	}
	for _, former := range r.release.Former {
		if err := deleteRecords(ctx, r.storageOf(former)); err != nil {
			return err
		}
	}
	return r.setLastRelease(nil)
}

// findLostRelease finds the release of an item whose provider status was lost, for example because the process was killed
// before it was stored. It searches only the release of the configuration.
func (r *run) findLostRelease(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if r.release != nil || r.config == nil || !r.config.HelmDeployment || target == nil || !r.Managed.HasLostInventory() {
		return nil
	}
	if err := r.Managed.Connect(ctx, target); err != nil {
		return err
	}
	revisions, err := r.newHistory().storage().List(ctx)
	if err != nil || len(revisions) == 0 {
		return err
	}
	if last := revisions[len(revisions)-1]; r.operationIDs().isOwn(last) {
		r.release = &ReleaseStatus{Name: r.config.Name, Namespace: r.config.Namespace, Revision: last.Number, Status: last.Status}
	}
	return nil
}

// newUninstall returns the operation that uninstalls the release of the provider status.
func (r *run) newUninstall(ctx context.Context) (*operation, error) {
	storage := release.NewStorage(r.Managed.Cluster, r.release.Namespace, r.release.Name)
	op := r.newOperation(kindUninstall, inputs{}, storage)
	if r.config != nil {
		op.settings.Timeout = cmp.Or(r.config.Uninstall.Timeout, r.config.DeleteTimeout)
	}
	if !r.release.isHelm() {
		return op, nil
	}
	var err error
	op.former, err = op.readLastRecord(ctx)
	return op, err
}

// maxDescribed limits how many objects describeRemaining reads and names.
const maxDescribed = 10

// describeRemaining names the objects of the item that still exist after a failed uninstall, and why. It returns "" if
// there are none.
func (r *run) describeRemaining(ctx context.Context) string {
	var names []string
	for i, entry := range r.Managed.Inventory.Entries {
		if len(names) == maxDescribed {
			names = append(names, fmt.Sprintf("and up to %d more", len(r.Managed.Inventory.Entries)-i))
			break
		}
		live, err := r.Managed.Cluster.Read(ctx, entry.Ref())
		switch {
		case err != nil:
			names = append(names, entry.Ref().String()+" (cannot be read)")
		case live == nil || live.GetUID() != entry.UID:
		case len(live.GetFinalizers()) > 0:
			names = append(names, fmt.Sprintf("%s (held by finalizers %s)", entry.Ref(), strings.Join(live.GetFinalizers(), ", ")))
		default:
			names = append(names, entry.Ref().String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; these objects remain: " + strings.Join(names, ", ")
}

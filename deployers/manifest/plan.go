// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/managed"
)

// Plan returns the objects that a reconcile of the item would create, change and delete in its target; see
// [apply.Engine.Plan]. Plan writes nothing. It reaches the target of the item through target and the cluster of the
// deploy items through ls, and reads the namespace kube-system in both clusters.
//
// The UID of the item determines which objects belong to the item. An item without a UID owns no objects. The provider
// status determines which objects are to be deleted. If the item moves to another cluster, the plan also lists the
// objects that are deleted in the old cluster.
//
// Readiness, exports, patchAfterDeployment and groups with deleteAllResources are not part of a plan. If the
// configuration is invalid, the error is one of deployerlib.NewConfigError. Any other error describes changes that
// could not be planned. The plan then contains all other changes.
func Plan(ctx context.Context, ls client.Reader, target client.Client, di *lsv1alpha1.DeployItem, opts Options) (apply.Plan, error) {
	config, err := Decode(di, opts)
	if err != nil {
		return apply.Plan{}, err
	}
	desired, err := config.ToDesired()
	if err != nil {
		return apply.Plan{}, err
	}
	status, err := DecodeStatus(di)
	if err != nil {
		return apply.Plan{}, err
	}
	owner, inventory, err := managed.PlanInventory(ctx, ls, target, di, status.Inventory)
	if err != nil {
		return apply.Plan{}, err
	}
	options := apply.Options{Recreate: opts.Recreate, SharedKinds: opts.SharedKinds, Adoption: opts.Adoption, FindOwner: managed.FindOwner(ls)}
	return apply.New(target, target.RESTMapper(), options).Plan(ctx, owner, desired, inventory)
}

// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/upkeep"
)

// unborn is the UID of an item that has not been created yet.
const unborn types.UID = "00000000-0000-0000-0000-000000000000"

// Plan returns what a reconcile of the item would create, change and delete in its target, and writes nothing; see
// [apply.Engine.Plan]. The item is used as it is. Its UID determines which objects are its own (none if it is empty),
// and its provider status determines which objects are to be deleted. ls is the cluster with the deploy items. Plan
// reads the namespace kube-system of ls and of the target. A plan for an item that moves to another cluster names the
// objects that are deleted in the old one.
//
// Readiness, exports, patchAfterDeployment and groups with deleteAllResources are not part of a plan. The error is a
// deployerlib.ConfigError for a fault in the configuration. Otherwise it says what cannot be planned, and the plan
// holds the rest.
func Plan(ctx context.Context, ls client.Reader, target client.Client, di *lsv1alpha1.DeployItem, opts Options) (apply.Plan, error) {
	config, err := Decode(di, opts)
	if err != nil {
		return apply.Plan{}, err
	}
	desired, err := config.Desired()
	if err != nil {
		return apply.Plan{}, err
	}
	status, err := DecodeStatus(di)
	if err != nil {
		return apply.Plan{}, err
	}
	inventory, err := inventoryOf(status)
	if err != nil {
		return apply.Plan{}, err
	}
	if di.Spec.Target != nil {
		if inventory, err = upkeep.Relocated(ctx, target, di.Spec.Target.Name, inventory); err != nil {
			return apply.Plan{}, err
		}
	}
	owner := ownership.Owner{UID: cmp.Or(di.UID, unborn), Namespace: di.Namespace, Name: di.Name}
	if owner.Landscape, err = upkeep.LandscapeID(ctx, ls); err != nil {
		return apply.Plan{}, err
	}
	return apply.New(target, target.RESTMapper(), apply.Options{Recreate: opts.Recreate, SharedKinds: opts.SharedKinds, Adoption: opts.Adoption}).Plan(ctx, owner, desired, inventory)
}

// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/runningcall"
	"github.com/deployerkit/deployerkit/patch"
)

// UnitCall is a call of a deployer in a unit test that calls a method of the deployer itself, without deployerlib and
// without an API server. Create it with NewUnitCall. The fields may be set before the call and read after it.
type UnitCall struct {
	// Item is the item to pass to the deployer.
	Item *lsv1alpha1.DeployItem
	// Phase is the result of deployerlib.StoredPhase. NewUnitCall sets it to the phase of the item, or to Init if the
	// item has no phase.
	Phase lsv1alpha1.DeployItemPhase
	// First is the result of deployerlib.IsFirstCall. NewUnitCall sets it to true if the item was never deployed
	// according to its status, or has no finalizer.
	First bool
	// OnCheckpoint is called by deployerlib.Checkpoint, which returns its result. It may be nil. To test what happens
	// after a crash, return an error, and call the deployer again with the last entry of Checkpoints.
	OnCheckpoint func() error
	// Checkpoints contains a copy of the status of the item for each successful call of deployerlib.Checkpoint.
	Checkpoints []lsv1alpha1.DeployItemStatus
	// Patch is the result of patch.FromContext. In a deployer, the library sends its changes.
	Patch *patch.Patch
}

// NewUnitCall returns a call for an item, and a context like the one that a deployer call or a hook receives. The
// functions deployerlib.Checkpoint, deployerlib.StoredPhase, deployerlib.IsFirstCall and patch.FromContext work with
// this context. As in a deployer, NewUnitCall sets the phase of the item to Init, or to InitDelete if the item is being
// deleted under the job-ID revision. It does not protect fields that only the library may change.
func NewUnitCall(ctx context.Context, di *lsv1alpha1.DeployItem) (context.Context, *UnitCall) {
	c := &UnitCall{
		Item: di, Phase: di.Status.Phase, First: contract.WasNeverDeployed(di) || !contract.HasLandscaperFinalizer(di), Patch: &patch.Patch{},
	}
	if c.Phase == "" {
		c.Phase = lsv1alpha1.DeployItemPhases.Init
	}
	d := contract.Evaluate(di, contract.Options{})
	action := contract.ActionReconcile
	if di.DeletionTimestamp != nil {
		action = contract.ActionDelete
	}
	di.Status.Phase = contract.InitialPhase(d.Revision, action)
	return patch.NewContext(runningcall.With(ctx, unitCall{c}), c.Patch), c
}

// PatchedItem returns the item with the changes that the deployer added to patch.FromContext.
func (c *UnitCall) PatchedItem() (*lsv1alpha1.DeployItem, error) {
	obj, err := c.Patch.ApplyToCopy(c.Item)
	if err != nil {
		return nil, err
	}
	di, _ := obj.(*lsv1alpha1.DeployItem)
	return di, nil
}

// unitCall implements runningcall.Call.
type unitCall struct{ c *UnitCall }

// Checkpoint records the status of the item, as it would be stored.
func (u unitCall) Checkpoint(context.Context) error {
	if err := contract.CheckProviderStatus(u.c.Item.Status.ProviderStatus); err != nil {
		return err
	}
	if u.c.OnCheckpoint != nil {
		if err := u.c.OnCheckpoint(); err != nil {
			return err
		}
	}
	status := *u.c.Item.Status.DeepCopy()
	status.Phase = u.c.Phase
	u.c.Checkpoints = append(u.c.Checkpoints, status)
	return nil
}

func (u unitCall) StoredPhase() lsv1alpha1.DeployItemPhase { return u.c.Phase }
func (u unitCall) IsFirstCall() bool                       { return u.c.First }

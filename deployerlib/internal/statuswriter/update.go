// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/guard"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/patch"
)

// MetadataPatch describes what a write changes in the metadata. All other metadata is preserved.
type MetadataPatch struct {
	AddFinalizer      bool
	RemoveFinalizer   bool
	RemoveAnnotations []string
}

// apply applies the patch to di. It removes an annotation only if the annotation has the same value in the parameters
// di and `read`.
func (m MetadataPatch) apply(di, read *lsv1alpha1.DeployItem) {
	if m.AddFinalizer {
		controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	}
	if m.RemoveFinalizer {
		controllerutil.RemoveFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	}
	for _, key := range m.RemoveAnnotations {
		if value, ok := di.Annotations[key]; ok && value == read.Annotations[key] {
			delete(di.Annotations, key)
		}
	}
}

// isEmpty reports whether there is nothing to change.
func (m MetadataPatch) isEmpty() bool {
	return !m.AddFinalizer && !m.RemoveFinalizer && len(m.RemoveAnnotations) == 0
}

// Update contains the values that a write stores.
type Update struct {
	Decision contract.Decision
	// Status is the status to store.
	Status *lsv1alpha1.DeployItemStatus
	// Metadata is the change of the metadata.
	Metadata MetadataPatch
	// IsOutcome is set if Status is the outcome of a call or run. If the write is rebased after a conflict,
	// guard.CopyOutcome restores this outcome.
	IsOutcome bool
	// Replaces is set if an earlier update was refused and this update replaces it. After a conflict, this update is
	// rebased even if the start of the run is not stored.
	Replaces bool
	// Keep is set if the update must not be lost. The loss would make the deployer repeat its work. If the API server
	// does not confirm the update, the session keeps it for Flush.
	Keep bool
}

// pendingUpdate is the update of a write in a form that can be applied to a newer version of the item after a conflict.
type pendingUpdate struct {
	own           itempatch.Changes            // the changes of the library
	outcomeStatus *lsv1alpha1.DeployItemStatus // the status of the outcome; nil if the write stores no outcome
	metadata      MetadataPatch
	userPatches   []*patch.Patch // applied after the changes in the fields `own` and `metadata`
}

// applyTo applies the update to a copy of an item and returns the copy. The parameter `fresh` is the item as a live
// read returned it.
func (u pendingUpdate) applyTo(s *Session, fresh *lsv1alpha1.DeployItem) (*lsv1alpha1.DeployItem, error) {
	changed, err := u.own.ApplyTo(fresh)
	if err != nil {
		return nil, fmt.Errorf("rebase changes: %w", err)
	}
	own, isItem := changed.(*lsv1alpha1.DeployItem)
	if !isItem {
		return nil, fmt.Errorf("rebase changes: %T is not a deploy item", changed)
	}
	if u.own.Status != nil {
		guard.CopyOutcome(u.outcomeStatus, &own.Status, s.decision)
	}
	fresh.ObjectMeta.DeepCopyInto(&own.ObjectMeta)
	u.metadata.apply(own, s.read)
	return s.patches.applyTo(s.raw, own, u.userPatches, s.decision.Revision)
}

// applyTo applies the user patches to a copy of the item in the parameter `own`, and returns the copy. The item already
// contains the library's changes. Functions in the patches receive the parameter `raw`, which is the stored body. If a
// patch cannot be applied, all patches are dropped.
func (p *userPatches) applyTo(raw map[string]any, own *lsv1alpha1.DeployItem, users []*patch.Patch, revision contract.Revision) (*lsv1alpha1.DeployItem, error) {
	if len(users) == 0 {
		return own, nil
	}
	patched, err := applyPatches(raw, own, users)
	if err != nil {
		p.drop()
		return nil, err
	}
	wanted := withStatus(own, &patched.Status, revision)
	wanted.ObjectMeta = patched.ObjectMeta
	return wanted, nil
}

// withStoredMetadata returns an item with the metadata of the parameter `stored` and the status of the parameter
// `wanted`. The API server stores this item between the two calls of a write.
func withStoredMetadata(stored, wanted *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{ObjectMeta: stored.ObjectMeta, Status: wanted.Status}
}

// withStatus returns a copy of an item with the given status. The copy and the item share the spec. withStatus reverts
// changes of the status that the revision does not allow, and limits sizes. It removes an invalid provider status, even
// if the invalid status is already stored.
func withStatus(base *lsv1alpha1.DeployItem, status *lsv1alpha1.DeployItemStatus, revision contract.Revision) *lsv1alpha1.DeployItem {
	wanted := &lsv1alpha1.DeployItem{TypeMeta: base.TypeMeta, Spec: base.Spec}
	base.ObjectMeta.DeepCopyInto(&wanted.ObjectMeta)
	status.DeepCopyInto(&wanted.Status)
	contract.RevertForbiddenChanges(revision, &base.Status, &wanted.Status)
	guard.LimitSize(&wanted.Status)
	if contract.CheckProviderStatus(wanted.Status.ProviderStatus) != nil {
		wanted.Status.ProviderStatus = nil
	}
	return wanted
}

// WouldChange reports whether a write of the given status would change the stored item.
func WouldChange(stored *lsv1alpha1.DeployItem, status *lsv1alpha1.DeployItemStatus, revision contract.Revision) bool {
	if equality.Semantic.DeepEqual(&stored.Status, status) {
		return false
	}
	changes, err := diff(stored, withStatus(stored, status, revision))
	return err != nil || !changes.IsEmpty()
}

// diff compares two versions of an item without their specs, which are equal and may be large.
func diff(before, after *lsv1alpha1.DeployItem) (itempatch.Changes, error) {
	return itempatch.Diff(withoutSpec(before), withoutSpec(after))
}

func withoutSpec(di *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{TypeMeta: di.TypeMeta, ObjectMeta: di.ObjectMeta, Status: di.Status}
}

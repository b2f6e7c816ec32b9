// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/guard"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/patch"
)

// metaIntent is what the flow wants of the metadata, independent of what else is there.
type metaIntent struct {
	addFinalizer      bool
	removeFinalizer   bool
	removeAnnotations []string
}

// apply carries the intent out on di. Annotations go only while they have the
// value that the pass acted on.
func (m metaIntent) apply(di, seen *lsv1alpha1.DeployItem) {
	if m.addFinalizer {
		controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	}
	if m.removeFinalizer {
		controllerutil.RemoveFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	}
	for _, key := range m.removeAnnotations {
		if value, ok := di.Annotations[key]; ok && value == seen.Annotations[key] {
			delete(di.Annotations, key)
		}
	}
}

// isEmpty tells that nothing is wanted.
func (m metaIntent) isEmpty() bool {
	return !m.addFinalizer && !m.removeFinalizer && len(m.removeAnnotations) == 0
}

// wish is what a write shall make of the item. After a conflict it is made
// again of the newer version.
type wish struct {
	own    itempatch.Changes            // the library's part
	told   *lsv1alpha1.DeployItemStatus // of the outcome of a run; nil: own is no outcome
	intent metaIntent                   // its metadata
	users  []*patch.Patch               // on top of both
}

// on is what the wish makes of a fresh version.
func (w wish) on(c *cycle, fresh *lsv1alpha1.DeployItem) (*lsv1alpha1.DeployItem, error) {
	changed, err := w.own.On(fresh)
	if err != nil {
		return nil, fmt.Errorf("carry changes over: %w", err)
	}
	own, isItem := changed.(*lsv1alpha1.DeployItem)
	if !isItem {
		return nil, fmt.Errorf("carry changes over: %T is no deploy item", changed)
	}
	if w.own.Status != nil {
		guard.Insist(w.told, &own.Status, c.decision)
	}
	fresh.ObjectMeta.DeepCopyInto(&own.ObjectMeta)
	w.intent.apply(own, c.stored)
	return withPatches(c, own, w.users)
}

// withPatches makes the users' patches on top of the library's own part.
// Patches that cannot be made are dropped.
func withPatches(c *cycle, own *lsv1alpha1.DeployItem, users []*patch.Patch) (*lsv1alpha1.DeployItem, error) {
	if len(users) == 0 {
		return own, nil
	}
	patched, err := overlay(own, users)
	if err != nil {
		c.running.drop()
		return nil, err
	}
	wanted := wantedItem(own, &patched.Status, c.decision.Revision)
	wanted.ObjectMeta = patched.ObjectMeta
	return wanted, nil
}

// half is the item between the two calls of a write: the status is there, the metadata is not.
func half(base, wanted *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{ObjectMeta: base.ObjectMeta, Status: wanted.Status}
}

// wantedItem is base with another status: what the revision does not allow is
// taken back, sizes are bounded, and a provider status that would poison the
// object is never written (a stored one is removed).
func wantedItem(base *lsv1alpha1.DeployItem, status *lsv1alpha1.DeployItemStatus, revision contract.Revision) *lsv1alpha1.DeployItem {
	wanted := base.DeepCopy()
	status.DeepCopyInto(&wanted.Status)
	contract.Mask(revision, &base.Status, &wanted.Status)
	guard.Bound(&wanted.Status)
	if contract.CheckProviderStatus(wanted.Status.ProviderStatus) != nil {
		wanted.Status.ProviderStatus = nil
	}
	return wanted
}

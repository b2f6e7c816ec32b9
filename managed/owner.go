// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// findOwnerTimeout limits how long a run waits for the API server that contains the owner of an object.
const findOwnerTimeout = 10 * time.Second

// findOwner reports whether a deploy item exists. An item that the cache of the manager contains exists. If the cache
// does not contain the item, findOwner reads the item from the API server, because the cache may be incomplete.
func (m *ResourceManager) findOwner(ctx context.Context, owner ownership.Owner) apply.OwnerState {
	key, di := types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, &lsv1alpha1.DeployItem{}
	if err := m.rt.Landscaper.GetClient().Get(ctx, key, di); err == nil && di.UID == owner.UID {
		return getOwnerState(di)
	}
	return FindOwner(m.rt.Landscaper.GetAPIReader())(ctx, owner)
}

// FindOwner returns a function for apply.Options.FindOwner that reads deploy items with the given client. The client
// must not read from a cache, because a cache does not prove that an item is gone.
func FindOwner(ls client.Reader) func(context.Context, ownership.Owner) apply.OwnerState {
	return func(ctx context.Context, owner ownership.Owner) apply.OwnerState {
		ctx, cancel := context.WithTimeout(ctx, findOwnerTimeout)
		defer cancel()
		di := &lsv1alpha1.DeployItem{}
		err := ls.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, di)
		absent := absence.ClassifyError(absence.Object{Kind: lsv1alpha1.Kind("DeployItem"), Name: owner.Name}, err)
		switch {
		case err == nil && di.UID == owner.UID:
			return getOwnerState(di)
		case err == nil, absent.IsProved():
			return apply.OwnerGone
		}
		return apply.OwnerUnknown
	}
}

// getOwnerState returns the state of an item that exists.
func getOwnerState(di *lsv1alpha1.DeployItem) apply.OwnerState {
	if di.DeletionTimestamp != nil {
		return apply.OwnerDeleting
	}
	return apply.OwnerExists
}

// SPDX-License-Identifier: Apache-2.0

package decide

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/object"
)

// IsUnreadable reports whether the error of a step means that the credentials do not allow reading an object that is to
// be deleted and may not exist. An object whose UID is known exists or existed, so that its deletion must not end
// without a proof. The UID is also known, but not in the inventory, before the object is read again after a failed
// deletion.
func (s Step) IsUnreadable(err error) bool {
	isRead := s.Effect == EffectRead || s.Effect == EffectReadMetadata
	return isRead && s.Facts.Manifest == nil && s.Facts.UID == "" && s.Facts.fault == nil &&
		(absence.ClassifyError(s.Facts.ToAbsenceObject(), err) == absence.MeaningNotAllowed || apierrors.IsUnauthorized(err))
}

// handleUnreadable waits for the right to read an object that may not exist, or removes the object from the inventory
// and emits an event.
func handleUnreadable(f Facts, unreadable Unreadable) Step {
	if unreadable == UnreadableWait {
		return f.wait("it is not known whether the object exists, because the credentials do not allow reading it")
	}
	f.recordEvent(object.ReasonMayRemain, "may remain in the cluster and is no longer tracked, because the credentials do not allow reading it")
	return f.doneForgotten()
}

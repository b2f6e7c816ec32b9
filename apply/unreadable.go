// SPDX-License-Identifier: Apache-2.0

package apply

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/apply/absence"
)

// unreadableError is the error of a read of an object that is to be deleted, if the object may not exist and the
// credentials do not allow reading it.
type unreadableError struct {
	err   error
	leave bool // the result of Options.LeaveUnreadable
}

func (e *unreadableError) Error() string { return e.err.Error() }

func (e *unreadableError) Unwrap() error { return e.err }

// mayBeUnreadable reports whether the result of a step is an unreadableError. An object whose UID is known exists or
// existed, so that its deletion must not end without a proof. The function decideAnother clears the UID before it reads
// the object again.
func (s step) mayBeUnreadable(err error) bool {
	isRead := s.effect == effectRead || s.effect == effectReadMetadata
	return isRead && s.known.want == nil && s.known.UID == "" && s.known.fault == nil &&
		(absence.Of(s.known.asAbsent(), err) == absence.NotAllowed || apierrors.IsUnauthorized(err))
}

// leaveUnreadable waits for the right to read an object that may not exist. If `leave` is true, it removes the object
// from the inventory instead and emits an event.
func (k known) leaveUnreadable(leave bool) step {
	if !leave {
		return k.wait("it is not known whether the object exists, because the credentials do not allow reading it")
	}
	k.note(ReasonMayRemain, "may remain in the cluster and is no longer tracked, because the credentials do not allow reading it")
	return k.leave()
}

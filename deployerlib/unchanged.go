// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"errors"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
)

// ErrUnchanged is returned by Reconcile or ForceReconcile when everything was
// found as it should be and there is nothing to tell. It counts as success. A
// background run of a finished job-ID item that ends with it writes nothing at
// all, not even lastReconcileTime; so a run that a schedule asked for must
// return nil, for the schedule counts from that time. Something is written all
// the same when there is something to say: the status was changed in memory, a
// patch was noted, condition BackgroundReconcile shows anything but success, or
// the annotation force-reconcile has to go.
//
// In a job, and under the annotation revision, it counts as nil. Joined with
// another error, or with WaitFor, the other one counts. Delete and Abort must
// not return it: from them it is an error like any other.
var ErrUnchanged = errors.New("nothing has changed")

// splitUnchanged takes ErrUnchanged out of what a deployer returned. It tells
// whether nothing else was in it.
func splitUnchanged(action contract.Action, err error) (rest error, unchanged bool) {
	if err == nil || action != contract.Reconcile && action != contract.ForceReconcile || !errors.Is(err, ErrUnchanged) {
		return err, false
	}
	rest = withoutUnchanged(err)
	return rest, rest == nil
}

// withoutUnchanged is err without ErrUnchanged; nil when nothing is left.
func withoutUnchanged(err error) error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand: every leaf counts
	case interface{ Unwrap() []error }:
		return joinedWithoutUnchanged(err, e.Unwrap())
	case utilerrors.Aggregate: // has no Unwrap
		return joinedWithoutUnchanged(err, e.Errors())
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil && withoutUnchanged(inner) == nil {
			return nil
		}
		return err
	}
	if err == ErrUnchanged { //nolint:errorlint // a leaf
		return nil
	}
	return err
}

// joinedWithoutUnchanged is a joined error without ErrUnchanged. One that has
// lost nothing stays what it is, text and all.
func joinedWithoutUnchanged(joined error, errs []error) error {
	var rest []error
	for _, err := range errs {
		if err != nil && withoutUnchanged(err) != nil {
			rest = append(rest, withoutUnchanged(err))
		}
	}
	switch len(rest) {
	case 0:
		return nil
	case len(errs):
		return joined
	case 1:
		return rest[0]
	}
	return errors.Join(rest...)
}

// leaveUnchanged ends a background run that found nothing to do: what is stored
// stays. false: there is something to tell, so it ends as any other.
func (r *reconciler) leaveUnchanged(c *cycle) bool {
	quiet := c.unchanged && c.decision.Background && c.outcome != nil && c.outcome.Done && c.outcome.Err == nil
	if !quiet || !contract.BackgroundShowsSuccess(c.base) {
		return false
	}
	changes, err := itempatch.Diff(c.base, wantedItem(c.base, &c.item.Status, c.decision.Revision))
	if err != nil || !changes.Empty() {
		return false
	}
	c.base.Status.DeepCopyInto(&c.item.Status)
	return true
}

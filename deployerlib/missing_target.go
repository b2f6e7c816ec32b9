// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"

	"github.com/deployerkit/deployerkit/contract"
)

// The error of an item whose Target does not exist.
const (
	opResolveTarget      = "ResolveTarget"
	reasonTargetNotFound = "TargetNotFound"
)

// targetMissing is the error of an item whose Target does not exist. It ends a
// deletion whose grace is over: its objects may have gone with their cluster, and
// a deletion that waits for the whole timeout tells nothing more. A deployment
// goes on waiting for its Target until its deadline.
func (r *reconciler) targetMissing(c *cycle) error {
	if rest, waits := r.targetGrace(c); waits && rest <= 0 {
		return lserrors.NewError(opResolveTarget, reasonTargetNotFound,
			fmt.Sprintf("%s; it did not come back within %s", c.targetErr, r.args.MissingTargetGrace), lsv1alpha1.ErrorConfigurationProblem)
	}
	return lserrors.NewError(opResolveTarget, reasonTargetNotFound, c.targetErr.Error())
}

// targetGrace is how long a deletion goes on waiting for its Target; false: the
// pass is no such deletion. The grace counts from when this run missed the Target
// first: its lastError holds the time, and a new run begins without one.
func (r *reconciler) targetGrace(c *cycle) (rest time.Duration, waits bool) {
	if c.targetErr == nil || !c.decision.Due || c.decision.Action != contract.Delete {
		return 0, false
	}
	missed := c.began
	if e := c.item.Status.LastError; e != nil && e.Operation == opResolveTarget && e.Reason == reasonTargetNotFound {
		missed = e.LastTransitionTime.Time
	}
	return missed.Add(r.args.MissingTargetGrace).Sub(r.args.Clock.Now()), true
}

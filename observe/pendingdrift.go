// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"time"
)

// PendingDrift is a drift that is not corrected yet.
type PendingDrift struct {
	Drift
	Correction

	// NotBefore is the time of the correction. It is later than the change if the correction is delayed.
	NotBefore time.Time
}

// String returns the drift as text for events.
func (d PendingDrift) String() string {
	if !d.Fight {
		return d.Drift.String()
	}
	about := d.Field
	if _, isReason := reasonTexts[DriftReason(d.Field)]; isReason {
		about = "the object"
	}
	return fmt.Sprintf("%s (a fight with %s about %s: corrected again after %s)", d.Drift, d.getOpponent(), about, d.Delay)
}

// DescribeFight returns text that says what the other manager does after each correction.
func (d PendingDrift) DescribeFight() string {
	what := cmp.Or(d.Field, "it") + " is changed"
	if passive, isReason := reasonTexts[DriftReason(d.Field)]; isReason {
		what = "it " + passive
	}
	return fmt.Sprintf("%s: %s by %s after every correction; the next correction follows after %s",
		d.Object, what, d.getOpponent(), d.Delay.Round(time.Millisecond))
}

// getOpponent returns the name of the manager with which the item fights, as text.
func (d PendingDrift) getOpponent() string { return cmp.Or(d.Manager, "an unknown manager") }

// reasonTexts says, for each kind of drift, what happens to the object.
var reasonTexts = map[DriftReason]string{
	DriftReasonDeleted: "is deleted", DriftReasonDeleting: "is deleted", DriftReasonReplaced: "is replaced",
	DriftReasonRelabelled: "gets the label of another item", DriftReasonWiped: "loses its managed fields", DriftReasonChanged: "is changed",
}

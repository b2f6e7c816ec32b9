// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// IsPaused reports whether an item carries [PausedAnnotation] with the value "true".
func IsPaused(di *lsv1alpha1.DeployItem) bool {
	return di != nil && di.Annotations[PausedAnnotation] == "true"
}

// HasPausedCondition reports whether [MarkPaused] would change nothing, for example because the item already has the
// condition.
func HasPausedCondition(di *lsv1alpha1.DeployItem, d Decision) bool {
	if di == nil || d.Action == ActionNone {
		return true
	}
	shown := GetCondition(di.Status.Conditions, ConditionPaused)
	if d.BlockedByPause {
		return shown != nil && shown.Status == lsv1alpha1.ConditionTrue
	}
	return shown == nil || IsPaused(di)
}

// MarkPaused sets [ConditionPaused] to True in memory if the pause holds back a run, and removes the condition when the
// pause has ended. In all other cases, MarkPaused does not change the condition. Repeated reconciles of a paused item
// therefore cause only one write. MarkPaused does not change an item for which no run is allowed.
func MarkPaused(di *lsv1alpha1.DeployItem, d Decision, now time.Time) {
	switch {
	case HasPausedCondition(di, d):
	case d.BlockedByPause:
		di.Status.Conditions = SetCondition(di.Status.Conditions, ConditionPaused, lsv1alpha1.ConditionTrue, conditionReasonHeldBack,
			"annotation "+PausedAnnotation+" holds back new runs", now)
	default:
		di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionPaused)
	}
}

// applyPause changes the decision for a paused item so that no new run starts. An abort and a run that has already
// begun continue. If a new run is due while another run is in progress, the new run waits and the run in progress
// continues.
func (v view) applyPause(d *Decision, now time.Time) {
	switch {
	case d.Due && d.Action == ActionAbort:
	case d.Due && (getRules(d.Revision).isInProgress(v, *d) || isExpired(v.di, *d, now)):
		if d.New {
			d.New, d.RemoveAnnotations = false, v.listStaleAbortKeys()
		}
	case d.Due:
		*d = Decision{Revision: d.Revision, Action: d.Action, Paused: true, BlockedByPause: true, Reason: reasonPaused, RemoveAnnotations: v.listStaleAbortKeys()}
	default:
		*d = Decision{Revision: d.Revision, Action: d.Action, Paused: true, Reason: d.Reason, RemoveAnnotations: d.RemoveAnnotations}
	}
}

// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// SetCondition returns a copy of the conditions in which the condition of type t has the given values. It does not
// change conds. lastTransitionTime changes only if the status changes. lastUpdateTime changes if the status, the
// reason, the message or the codes change. Setting the same values again changes nothing.
//
// SetCondition does not use meta.SetStatusCondition of apimachinery, because Landscaper has its own condition type,
// with codes and lastUpdateTime.
func SetCondition(conds []lsv1alpha1.Condition, t lsv1alpha1.ConditionType, status lsv1alpha1.ConditionStatus,
	reason, message string, now time.Time, codes ...lsv1alpha1.ErrorCode,
) []lsv1alpha1.Condition {
	want := lsv1alpha1.Condition{
		Type: t, Status: status, Reason: reason, Message: message, Codes: codes,
		LastTransitionTime: toStoredTime(now), LastUpdateTime: toStoredTime(now),
	}
	i := slices.IndexFunc(conds, func(c lsv1alpha1.Condition) bool { return c.Type == t })
	if i < 0 {
		return append(slices.Clip(slices.Clone(conds)), want)
	}
	old := conds[i]
	if old.Status == status && !old.LastTransitionTime.IsZero() {
		want.LastTransitionTime = old.LastTransitionTime
	}
	same := old.Status == status && old.Reason == reason && old.Message == message && slices.Equal(old.Codes, codes)
	if same && !old.LastTransitionTime.IsZero() && !old.LastUpdateTime.IsZero() {
		return conds
	}
	out := slices.Clone(conds)
	out[i] = want
	return out
}

// SetMissingTimes sets the missing times of the conditions in conds, which user code may have written without times.
// The API server refuses a condition without them. The times come from the condition of the same type in stored, as in
// [SetCondition]: lastTransitionTime changes only if the status changes, and lastUpdateTime only if anything changes.
func SetMissingTimes(stored, conds []lsv1alpha1.Condition, now time.Time) {
	for i := range conds {
		c := &conds[i]
		if !c.LastTransitionTime.IsZero() && !c.LastUpdateTime.IsZero() {
			continue
		}
		same := SetCondition(stored, c.Type, c.Status, c.Reason, c.Message, now, c.Codes...)
		complete := GetCondition(same, c.Type)
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = complete.LastTransitionTime
		}
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = complete.LastUpdateTime
		}
	}
}

// RemoveCondition returns the conditions except the conditions of type t. It does not change conds. It returns nil if
// no condition is left.
func RemoveCondition(conds []lsv1alpha1.Condition, t lsv1alpha1.ConditionType) []lsv1alpha1.Condition {
	if GetCondition(conds, t) == nil {
		return conds
	}
	var out []lsv1alpha1.Condition
	for _, c := range conds {
		if c.Type != t {
			out = append(out, c)
		}
	}
	return out
}

// GetCondition returns a copy of the condition of type t, or nil if there is none.
func GetCondition(conds []lsv1alpha1.Condition, t lsv1alpha1.ConditionType) *lsv1alpha1.Condition {
	for i := range conds {
		if conds[i].Type == t {
			return conds[i].DeepCopy()
		}
	}
	return nil
}

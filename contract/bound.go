// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxTexts is how large errors and conditions of a status may be together, in bytes of JSON.
const MaxTexts = 64 << 10

// maxCodes bounds the codes of one error or condition.
const maxCodes = 16

// Bound shortens what people read: errors become one line of at most 1 KiB, the history keeps the newest five, and
// conditions lose first the ends of their messages and then, last ones first, their place, until all together fit in
// [MaxTexts]. What is missing is counted. The library's own conditions stay; providerStatus is never touched.
func Bound(status *lsv1alpha1.DeployItemStatus) {
	if status == nil {
		return
	}
	status.LastError = boundError(status.LastError)
	status.FirstError = boundError(status.FirstError)
	history := status.LastErrors
	if len(history) > maxHistory {
		history = history[len(history)-maxHistory:]
	}
	for i, e := range history {
		if b := boundError(e); b != e {
			history = slices.Clone(history)
			history[i] = b
		}
	}
	status.LastErrors = history
	room := MaxTexts - size(status.LastError) - size(status.FirstError) - size(status.LastErrors)
	status.Conditions = boundConditions(status.Conditions, room)
}

func boundError(e *lsv1alpha1.Error) *lsv1alpha1.Error {
	if e == nil {
		return nil
	}
	b := *e
	b.Operation, b.Reason, b.Message = OneLine(e.Operation, maxWord), OneLine(e.Reason, maxWord), OneLine(e.Message, maxMessage)
	b.Codes = boundCodes(e.Codes)
	if sameError(&b, e) {
		return e
	}
	return &b
}

func boundCodes(codes []lsv1alpha1.ErrorCode) []lsv1alpha1.ErrorCode {
	if len(codes) > maxCodes {
		codes = codes[:maxCodes]
	}
	for i, c := range codes {
		if short := OneLine(string(c), maxWord); short != string(c) {
			codes = slices.Clone(codes)
			codes[i] = lsv1alpha1.ErrorCode(short)
		}
	}
	return codes
}

// boundConditions shortens messages step by step and then drops conditions.
func boundConditions(conds []lsv1alpha1.Condition, room int) []lsv1alpha1.Condition {
	if len(conds) == 0 {
		return conds
	}
	for _, limit := range []int{32 << 10, 4 << 10, maxMessage, maxWord} {
		short := shorten(conds, limit)
		if size(short) <= room {
			return short
		}
	}
	return dropConditions(shorten(conds, maxWord), room)
}

func shorten(conds []lsv1alpha1.Condition, limit int) []lsv1alpha1.Condition {
	out := slices.Clone(conds)
	for i := range out {
		c := &out[i]
		c.Message = cut(EscapeBidi(strings.ToValidUTF8(c.Message, "\uFFFD")), limit)
		c.Reason = OneLine(c.Reason, maxMessage)
		c.Codes = boundCodes(c.Codes)
	}
	return out
}

// dropConditions keeps the library's own conditions and the first others that fit, and says how many are missing.
func dropConditions(conds []lsv1alpha1.Condition, room int) []lsv1alpha1.Condition {
	note := GetCondition(conds, ConditionTruncated)
	conds = RemoveCondition(conds, ConditionTruncated)
	room -= size(truncated(len(conds), conds))
	for _, c := range conds {
		if isOurs(c.Type) {
			room -= size(c) + 1
		}
	}
	var kept []lsv1alpha1.Condition
	for _, c := range conds {
		if !isOurs(c.Type) {
			if room -= size(c) + 1; room < 0 {
				continue
			}
		}
		kept = append(kept, c)
	}
	count := truncated(len(conds)-len(kept), conds)
	if note != nil && note.Message == count.Message {
		count = *note
	}
	return append(kept, count)
}

// isOurs reports whether a condition belongs to the library.
func isOurs(t lsv1alpha1.ConditionType) bool {
	return t == ConditionBackground || t == ConditionDeployed || t == ConditionWaiting || t == ConditionPaused
}

// truncated is the condition that counts what is missing. Its time is the newest of the conditions: no clock here.
func truncated(missing int, conds []lsv1alpha1.Condition) lsv1alpha1.Condition {
	var at metav1.Time
	for _, c := range conds {
		if c.LastUpdateTime.After(at.Time) {
			at = c.LastUpdateTime
		}
	}
	return lsv1alpha1.Condition{
		Type: ConditionTruncated, Status: lsv1alpha1.ConditionTrue, Reason: "TooLarge",
		Message:            fmt.Sprintf("%d conditions were dropped, errors and conditions must fit in %d bytes", missing, MaxTexts),
		LastTransitionTime: at, LastUpdateTime: at,
	}
}

// size is what a value takes in the API server; what cannot be encoded takes nothing.
func size(v any) int {
	body, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(body)
}

// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
)

// maxTextSize is the maximum size of all errors and conditions of a status together, in bytes of JSON.
const maxTextSize = 64 << 10

// maxCodes is the maximum number of codes of one error or condition.
const maxCodes = 16

// LimitSize limits the size of the texts in a status. The message of each error becomes one line of at most 1 KiB, and
// the history is cut to the newest five errors. All errors and conditions together must fit in 64 KiB. If they do not
// fit, the messages of the conditions are cut first, and then the last conditions are dropped. If conditions are
// dropped, LimitSize adds a condition that states how many. LimitSize never drops the library's own conditions, and
// does not change providerStatus.
func LimitSize(status *lsv1alpha1.DeployItemStatus) {
	if status == nil {
		return
	}
	status.LastError = limitErrorSize(status.LastError)
	status.FirstError = limitErrorSize(status.FirstError)
	history := status.LastErrors
	if len(history) > contract.MaxLastErrors {
		history = history[len(history)-contract.MaxLastErrors:]
	}
	for i, e := range history {
		if b := limitErrorSize(e); b != e {
			history = slices.Clone(history)
			history[i] = b
		}
	}
	status.LastErrors = history
	room := maxTextSize - getSize(status.LastError) - getSize(status.FirstError) - getSize(status.LastErrors)
	status.Conditions = limitConditionsSize(status.Conditions, room)
}

func limitErrorSize(e *lsv1alpha1.Error) *lsv1alpha1.Error {
	if e == nil {
		return nil
	}
	b := *e
	b.Operation, b.Reason, b.Message = contract.OneLine(e.Operation, contract.MaxReason), contract.OneLine(e.Reason, contract.MaxReason), contract.OneLine(e.Message, contract.MaxMessage)
	b.Codes = limitCodes(e.Codes)
	if equality.Semantic.DeepEqual(&b, e) {
		return e
	}
	return &b
}

func limitCodes(codes []lsv1alpha1.ErrorCode) []lsv1alpha1.ErrorCode {
	if len(codes) > maxCodes {
		codes = codes[:maxCodes]
	}
	for i, c := range codes {
		if short := contract.OneLine(string(c), contract.MaxReason); short != string(c) {
			codes = slices.Clone(codes)
			codes[i] = lsv1alpha1.ErrorCode(short)
		}
	}
	return codes
}

// limitConditionsSize shortens messages step by step and then drops conditions.
func limitConditionsSize(conds []lsv1alpha1.Condition, room int) []lsv1alpha1.Condition {
	if len(conds) == 0 {
		return conds
	}
	for _, limit := range []int{32 << 10, 4 << 10, contract.MaxMessage, contract.MaxReason} {
		short := shortenMessages(conds, limit)
		if getSize(short) <= room {
			return short
		}
	}
	return dropConditions(shortenMessages(conds, contract.MaxReason), room)
}

func shortenMessages(conds []lsv1alpha1.Condition, limit int) []lsv1alpha1.Condition {
	out := slices.Clone(conds)
	for i := range out {
		c := &out[i]
		c.Message = contract.Truncate(contract.EscapeBidi(strings.ToValidUTF8(c.Message, "\uFFFD")), limit)
		c.Reason = contract.OneLine(c.Reason, contract.MaxMessage)
		c.Codes = limitCodes(c.Codes)
	}
	return out
}

// dropConditions returns the library's own conditions, as many other conditions as fit, and a condition with the number
// of dropped conditions.
func dropConditions(conds []lsv1alpha1.Condition, room int) []lsv1alpha1.Condition {
	note := contract.GetCondition(conds, contract.ConditionTruncated)
	conds = contract.RemoveCondition(conds, contract.ConditionTruncated)
	room -= getSize(newTruncatedCondition(len(conds), conds))
	own := contract.AllConditionTypes()
	for _, c := range conds {
		if slices.Contains(own, c.Type) {
			room -= getSize(c) + 1
		}
	}
	var kept []lsv1alpha1.Condition
	for _, c := range conds {
		if !slices.Contains(own, c.Type) {
			if room -= getSize(c) + 1; room < 0 {
				continue
			}
		}
		kept = append(kept, c)
	}
	count := newTruncatedCondition(len(conds)-len(kept), conds)
	if note != nil && note.Message == count.Message {
		count = *note
	}
	return append(kept, count)
}

// newTruncatedCondition returns a condition with the number of dropped conditions. The time of this condition is the
// newest time in the parameter `conds`, because this package has no clock.
func newTruncatedCondition(missing int, conds []lsv1alpha1.Condition) lsv1alpha1.Condition {
	var at metav1.Time
	for _, c := range conds {
		if c.LastUpdateTime.After(at.Time) {
			at = c.LastUpdateTime
		}
	}
	return lsv1alpha1.Condition{
		Type: contract.ConditionTruncated, Status: lsv1alpha1.ConditionTrue, Reason: "TooLarge",
		Message:            fmt.Sprintf("%d conditions were dropped, because errors and conditions must fit in %d bytes", missing, maxTextSize),
		LastTransitionTime: at, LastUpdateTime: at,
	}
}

// getSize returns the encoded size of a value, or 0 if it cannot be encoded.
func getSize(v any) int {
	body, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(body)
}

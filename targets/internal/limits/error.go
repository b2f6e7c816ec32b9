// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"strings"
	"unicode"
)

// Error is returned if a response exceeds a limit.
type Error struct {
	// Option is the name of the field of Limits that sets the limit. It is empty if the limit is fixed.
	Option string
	// Reason describes how the response exceeded the limit.
	Reason string

	metric string // the label of the metric that counts responses that exceeded a limit
}

func (e *Error) Error() string {
	if e.Option == "" {
		return "the response of the target " + e.Reason
	}
	return fmt.Sprintf("the response of the target %s (%s)", e.Reason, getHint(e.Option))
}

// newSizeError returns the error for a response with too many bytes.
func newSizeError(metric, option, what string, limit int64) *Error {
	return &Error{Option: option, Reason: fmt.Sprintf("has more than %d bytes, the limit for %s", limit, what), metric: metric}
}

// newValuesError returns the error for a response that must not be decoded although its size is within the limits.
func newValuesError(option, reason string) *Error {
	return &Error{Option: option, Reason: reason, metric: "values"}
}

// getHint describes how to raise a limit.
func getHint(option string) string {
	return fmt.Sprintf("targets.Limits.%s or the flag %s raises this limit", option, GetFlag(option))
}

// GetFlag returns the flag for a field of Limits.
func GetFlag(option string) string {
	var out strings.Builder
	out.WriteString("--target-limit")
	for _, c := range option {
		if unicode.IsUpper(c) {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(c))
	}
	return out.String()
}

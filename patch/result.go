// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/internal/patching"
)

// Result describes the calls and the outcome of Apply. It is also valid if Apply returns an error.
type Result struct {
	// Calls lists the writes in their order, including failed ones. It is empty if nothing had to change.
	Calls []Call
	// Attempts is the number of attempts to send the patch: 0 if nothing had to change, and 1 without a conflict.
	Attempts int
	// Reads is the number of reads of the object. Apply reads before it runs functions on a typed object, after
	// conflicts, and before updates if patches are forbidden.
	Reads int
	// Body is the raw object as the API server returned it last, or as it was passed to Apply if there was no call. It is
	// nil if Gone is set. The caller may change it.
	Body map[string]any
	// Gone reports whether the object no longer exists, was replaced by another object of the same name, or is about to
	// be removed because the patch removed its last finalizer. Changes that had not been sent by then are dropped. A
	// response with the status 404 that does not name the object, for example of a proxy, is an error instead.
	Gone bool
	// Warnings contains a warning for each field that the API server silently dropped. A warning begins with the path
	// of the field. The warnings are also logged with the logger of the context.
	Warnings []string
	// Left contains the changes and functions that were not applied, if Apply returns an error. If the main resource was
	// written, Left contains only the changes of the status, and the functions in Left change only the status. It is nil
	// if everything was applied.
	Left *Patch
}

// Call describes one write. Its Type is the content type of a patch, or empty for an update.
type Call = patching.Call

// FieldError is the error for a field that cannot be changed as requested. It contains the path of the field. Use
// errors.As to find the error.
type FieldError = jsondiff.FieldError

// SizeError is the error of a write that the API server refused because the whole object is too large.
type SizeError = patching.SizeError

// RightsError is the error for an object that can neither be patched nor updated, because the client has neither of
// these permissions.
type RightsError = patching.RightsError

// IsTooLarge reports whether err means that the write can never succeed, because the object is too large. It accepts
// errors of this package and errors of the API server. It returns false for nil.
func IsTooLarge(err error) bool { return patching.IsTooLarge(err) }

// SPDX-License-Identifier: Apache-2.0

package patch

import "github.com/deployerkit/deployerkit/internal/patching"

// Result is what Apply did. It is also set if Apply returns an error.
type Result struct {
	// Calls are the writes in their order, including failed ones. It is empty if nothing had to change.
	Calls []Call
	// Attempts is the number of attempts to send the patch: 0 if nothing had to change, and 1 without a conflict.
	Attempts int
	// Reads is the number of reads of the object: before functions on a typed object, after conflicts, and before
	// updates where patches are forbidden.
	Reads int
	// Body is the raw object as the API server last returned it, or as it was passed to Apply if there was no call. It
	// is nil if the object is gone. The caller may change it.
	Body map[string]any
	// Gone reports that the object no longer exists, was replaced by another one with the same name, or is about to be
	// removed because the patch removed its last finalizer. Changes that were not sent by then are dropped.
	Gone bool
	// Warnings lists the fields that the API server silently dropped, each with its path first. They are also logged
	// with the logger of the context.
	Warnings []string
	// Left holds what was not applied if Apply returns an error. After the main resource was written, it holds only the
	// part for the status, and its functions change only the status. It is nil if nothing is left.
	Left *Patch
}

// Call is one write. Its Type is the content type of a patch, and empty for an update.
type Call = patching.Call

// FieldError reports a field that cannot be changed as requested, with its path. Use errors.As to find it.
type FieldError = patching.FieldError

// SizeError reports that the API server refused a write because of the size of the whole object.
type SizeError = patching.SizeError

// RightsError reports that an object can neither be patched nor updated because both rights are missing.
type RightsError = patching.RightsError

// Permanent reports whether the same write can never succeed because the object is too large. It works on errors of this package and
// on raw API errors. It returns false for nil.
func Permanent(err error) bool { return patching.Permanent(err) }

// SPDX-License-Identifier: Apache-2.0

package patch

import "github.com/deployerkit/deployerkit/internal/patching"

// Result is what Apply did, also after an error.
type Result struct {
	// Calls are the writes in their order, with those that failed. There are none if nothing had to change.
	Calls []Call
	// Attempts is how often sending was tried: 0 if nothing had to change, 1 without a conflict.
	Attempts int
	// Reads is how often the object was read: before functions on a typed object, after conflicts, and before updates where patches
	// are forbidden.
	Reads int
	// Body is the raw object as the API server returned it last, or as it was handed in if there was no call. It is nil if the
	// object is gone. It is the caller's own.
	Body map[string]any
	// Gone means that the object does not exist any more, is another one of the same name, or is about to go since the patch removed
	// its last finalizer. What was still to be sent is dropped.
	Gone bool
	// Warnings name, path first, the fields that the API server silently left out. They are also logged with the logger of the
	// context.
	Warnings []string
	// Left holds what was not applied when Apply returns an error: after the main resource was written only the part for the status.
	// Functions in it keep to that part. It is nil if nothing is left.
	Left *Patch
}

// Call is one write. Its Type is the content type of a patch, and empty for an update.
type Call = patching.Call

// FieldError reports a field that cannot be changed as requested, with its path. Find it with errors.As.
type FieldError = patching.FieldError

// SizeError reports that the API server refused a write because of the size of the whole object.
type SizeError = patching.SizeError

// RightsError reports that an object can neither be patched nor updated because both rights are missing.
type RightsError = patching.RightsError

// Permanent reports whether the same write can never succeed because the object is too large. It works on errors of this package and
// on raw API errors. It returns false for nil.
func Permanent(err error) bool { return patching.Permanent(err) }

// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"k8s.io/apimachinery/pkg/types"
)

// Result tells what Apply did. After an error too.
type Result struct {
	// Calls are the writes in their order, those that failed too. None: nothing had to change.
	Calls []Call
	// Attempts is how often sending was tried: 0 if nothing had to change, 1 without a conflict.
	Attempts int
	// Reads is how often the object was read: after conflicts, and when functions need to know what the
	// object's Go type cannot tell.
	Reads int
	// Body is the raw object as the API server returned it last; as it was handed in if nothing was sent;
	// nil if it is gone. It is the caller's own.
	Body map[string]any
	// Gone tells that the object does not exist any more, or is about to go since the patch removed its last
	// finalizer. What was still to be sent is dropped.
	Gone bool
	// Warnings name, path first, the fields that the API server silently left out.
	Warnings []string
	// Left holds what was not applied when Apply returns an error: after the main resource was written only
	// the part for the status. Functions in it keep to that part. nil if nothing is left.
	Left *Patch
}

// Call is one write.
type Call struct {
	// Subresource is "status" or empty.
	Subresource string
	// Type is the content type.
	Type types.PatchType
	// Bytes is the size of what was sent.
	Bytes int
	// Err is the API server's answer; nil: accepted.
	Err error
}

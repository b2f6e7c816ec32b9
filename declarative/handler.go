// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"time"
)

// Handler says what shall be, for one deploy item at a time. It is called for different items at the same time and
// never twice at the same time for one item: state of its own needs a lock.
type Handler interface {
	// Sync gets a snapshot of one item and its observed children, and returns the item's status and all children
	// that it shall have. Children that it had and that are not returned are deleted. Sync should be a pure
	// function of the request: see the package comment on stable values.
	//
	// An error: no child is touched, the error is counted and told in the item's lastError, and Sync is called again
	// after a wait that grows from 100 ms to 10 min. An error with an unrecoverable Landscaper code (that of
	// [Config], for instance) ends the job at once. A response beside an error counts for its Status only; with a
	// nil response the provider status is not touched either.
	// A nil response without an error is a mistake and counts as an error.
	Sync(ctx context.Context, req *SyncRequest) (*SyncResponse, error)
}

// Finalizer is implemented by handlers that have something to clean up besides the children when an item is deleted.
// Without it the children are deleted at once.
type Finalizer interface {
	// Finalize is called instead of Sync when the item is to be deleted, as long as it answers with Retry, while
	// the children are still there. Then the children are deleted, and the item goes.
	// It may be called again after it said that it is done. Errors are as with Sync. A nil response means done.
	Finalize(ctx context.Context, req *SyncRequest) (*FinalizeResponse, error)
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, req *SyncRequest) (*SyncResponse, error)

// Sync calls the function.
func (f HandlerFunc) Sync(ctx context.Context, req *SyncRequest) (*SyncResponse, error) {
	return f(ctx, req)
}

// FinalizeResponse is the answer of a [Finalizer].
type FinalizeResponse struct {
	// Status is as in [SyncResponse]; nil leaves the one that is there.
	Status any
	// Retry of more than zero: not done yet, call again after this time, sooner when a child changes. Zero: done.
	Retry time.Duration
	// Reason tells in one line what is waited for, for the item's condition. Empty: a general text.
	Reason string
}

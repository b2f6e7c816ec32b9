// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
)

// FailableHandler is a handler in three steps, for those that validate a lot or call other systems: whatever goes wrong in
// the first two, the third tells it in the item's status. Make a [Handler] of it with [Failable].
type FailableHandler interface {
	// Validate says whether the item can be handled at all. Return a deployerlib.ConfigError for what only
	// another configuration can heal: it ends the job at once.
	Validate(ctx context.Context, req *SyncRequest) error
	// SyncChildren returns the desired children, as in [SyncResponse].Children. Not called after an error of
	// Validate.
	SyncChildren(ctx context.Context, req *SyncRequest) ([]any, error)
	// DetermineStatus returns the item's status; nil: none. cause is the error of Validate or of SyncChildren,
	// nil when both went well.
	DetermineStatus(ctx context.Context, req *SyncRequest, cause error) (any, error)
}

// Failable makes a [Handler] of a [FailableHandler]; if h is a [Finalizer], so is the handler.
//
// An error of Validate or SyncChildren stays one: no child is touched, it is counted, it is in the item's lastError,
// and Sync is called again. The status of DetermineStatus is stored beside it. An error of DetermineStatus
// means the same, without a status.
func Failable(h FailableHandler) Handler {
	if f, ok := h.(Finalizer); ok {
		return struct {
			failable
			Finalizer
		}{failable{h}, f}
	}
	return failable{h}
}

// failable runs the three steps.
type failable struct{ steps FailableHandler }

func (f failable) Sync(ctx context.Context, req *SyncRequest) (*SyncResponse, error) {
	children, cause := f.children(ctx, req)
	status, err := f.steps.DetermineStatus(ctx, req, cause)
	switch {
	case err != nil && cause != nil:
		return nil, errors.Join(cause, err)
	case err != nil:
		return nil, err
	case cause != nil:
		return &SyncResponse{Status: status}, cause
	}
	return &SyncResponse{Status: status, Children: children}, nil
}

// children runs the first two steps.
func (f failable) children(ctx context.Context, req *SyncRequest) ([]any, error) {
	if err := f.steps.Validate(ctx, req); err != nil {
		return nil, err
	}
	return f.steps.SyncChildren(ctx, req)
}

// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
)

// FailableHandler is a handler in three steps, for handlers that validate much or call other systems. If one of the
// first two steps fails, the third reports the error in the item's status. [Failable] converts it to a [Handler].
type FailableHandler interface {
	// Validate checks whether the item can be handled at all. It returns a deployerlib.ConfigError for a fault that
	// only another configuration can correct. Such an error ends the job at once.
	Validate(ctx context.Context, req *SyncRequest) error
	// SyncChildren returns the desired children, as in [SyncResponse].Children. It is not called after an error of
	// Validate.
	SyncChildren(ctx context.Context, req *SyncRequest) ([]any, error)
	// DetermineStatus returns the item's status, or nil for no status. cause is the error of Validate or of
	// SyncChildren, or nil if both succeeded.
	DetermineStatus(ctx context.Context, req *SyncRequest, cause error) (any, error)
}

// Failable converts a [FailableHandler] to a [Handler]. If h is a [Finalizer], so is the handler.
//
// An error of Validate or SyncChildren remains an error. No child is changed, the error is counted and stored in the
// item's lastError, and Sync is called again. The status from DetermineStatus is stored with it. An error of
// DetermineStatus has the same effect, but then no status is stored.
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

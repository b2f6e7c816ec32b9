// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
)

// FailableHandler is a handler that consists of three steps. The third step can report errors of the first two steps in
// the item's status. This is useful for handlers that validate a lot or call other systems. [FromFailable] converts a
// FailableHandler to a [Handler].
type FailableHandler interface {
	// Validate checks whether the item can be handled at all. It returns an error of deployerlib.NewConfigError for an
	// error that only a change of the configuration can correct. Such an error ends the item's Landscaper job at once.
	Validate(ctx context.Context, req *SyncRequest) error
	// SyncChildren returns the desired children, as in [SyncResponse].Children. It is not called if Validate returned
	// an error.
	SyncChildren(ctx context.Context, req *SyncRequest) ([]any, error)
	// DetermineStatus returns the item's status, or nil for no status. If Validate or SyncChildren failed, cause is its
	// error, and otherwise nil.
	DetermineStatus(ctx context.Context, req *SyncRequest, cause error) (any, error)
}

// FromFailable converts a [FailableHandler] to a [Handler]. If h is a [Finalizer], the result is a Finalizer too.
//
// If Validate or SyncChildren returns an error, the Handler returns this error together with the status from
// DetermineStatus. The status is stored. The error has the same effect as any error of [Handler].Sync. If
// DetermineStatus also returns an error, the Handler returns both errors, and no status is stored.
func FromFailable(h FailableHandler) Handler {
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
	children, cause := f.runSteps(ctx, req)
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

// runSteps runs the first two steps.
func (f failable) runSteps(ctx context.Context, req *SyncRequest) ([]any, error) {
	if err := f.steps.Validate(ctx, req); err != nil {
		return nil, err
	}
	return f.steps.SyncChildren(ctx, req)
}

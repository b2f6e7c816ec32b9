// SPDX-License-Identifier: Apache-2.0

// Package runningcall connects the context of a deployer call with the functions of deployerlib that take such a
// context. deployerlib creates these contexts in a deployer, and landscapertest creates them in a unit test.
package runningcall

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Call is a running call of a deployer.
type Call interface {
	// Checkpoint implements deployerlib.Checkpoint.
	Checkpoint(ctx context.Context) error
	// StoredPhase implements deployerlib.StoredPhase.
	StoredPhase() lsv1alpha1.DeployItemPhase
	// IsFirstCall implements deployerlib.IsFirstCall.
	IsFirstCall() bool
}

type contextKey struct{}

// With returns a context that belongs to the call c.
func With(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the call to which ctx belongs, or nil if it belongs to none.
func From(ctx context.Context) Call {
	c, _ := ctx.Value(contextKey{}).(Call)
	return c
}

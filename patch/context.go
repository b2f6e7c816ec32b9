// SPDX-License-Identifier: Apache-2.0

package patch

import "context"

type contextKey struct{}

// NewContext returns a context from which FromContext returns p. The caller must send p later, as deployerlib does for
// a deploy item.
func NewContext(ctx context.Context, p *Patch) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the patch that NewContext added to ctx, or nil if there is none. The code that called NewContext
// sends the changes in the patch with its next write.
//
// In a deployer built with deployerlib, this is the patch of the deploy item. It is available to calls of the deployer,
// and to hooks from AfterResponsibilityCheck on. It is not available to the hooks Start and DuringResponsibilityCheck,
// because the item may belong to another deployer. Changes that are added after the hook or the call has returned may
// be dropped.
func FromContext(ctx context.Context) *Patch {
	p, _ := ctx.Value(contextKey{}).(*Patch)
	return p
}

// SPDX-License-Identifier: Apache-2.0

package patch

import "context"

type contextKey struct{}

// NewContext returns a context that carries p as the running patch. The caller sends the patch in the end, as deployerlib does for a
// deploy item.
func NewContext(ctx context.Context, p *Patch) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the running patch, or nil if ctx carries none. What is noted in it goes out with the next write of the code that
// made the context.
//
// In a deployer built with deployerlib it is the patch of the deploy item. Calls of the deployer have one, and hooks from
// AfterResponsibilityCheck on. Start and DuringResponsibilityCheck have none, since the item may belong to another deployer. What is
// noted after the hook or the call returned may be dropped.
func FromContext(ctx context.Context) *Patch {
	p, _ := ctx.Value(contextKey{}).(*Patch)
	return p
}

// SPDX-License-Identifier: Apache-2.0

package patch

import "context"

type contextKey struct{}

// NewContext returns a context that carries p as the running patch. Whoever makes it sends the patch in the
// end; deployerlib does so for the deploy item of a pass.
func NewContext(ctx context.Context, p *Patch) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the running patch: what is noted in it goes out with the next write of whoever made the
// context. nil if ctx carries none.
//
// In a deployer built with deployerlib it is the patch of the deploy item. Calls of the deployer have one, and
// hooks from AfterResponsibilityCheck on; Start and DuringResponsibilityCheck have none, since the item may
// belong to somebody else. What is noted after the hook or the call returned may be dropped.
func FromContext(ctx context.Context) *Patch {
	p, _ := ctx.Value(contextKey{}).(*Patch)
	return p
}

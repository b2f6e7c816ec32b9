// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/extension"
)

// PortedHook is a hook with the signature of Landscaper's current library: no logger.
type PortedHook func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error)

// PortedHooks maps hook types to ported hooks.
type PortedHooks map[extension.HookType][]PortedHook

// convert gives each hook the logger that it does not take. A nil hook stays nil,
// so that Validate names it.
func (p PortedHooks) convert() extension.ReconcileExtensionHooks {
	out := extension.ReconcileExtensionHooks{}
	for t, hooks := range p {
		for _, h := range hooks {
			out[t] = append(out[t], withoutLogger(h))
		}
	}
	return out
}

func withoutLogger(h PortedHook) extension.ReconcileExtensionHook {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		return h(ctx, di, target, t)
	}
}

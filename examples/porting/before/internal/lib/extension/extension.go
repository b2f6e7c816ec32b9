// SPDX-License-Identifier: Apache-2.0

// Package extension declares the hooks of Landscaper's library v0.28 and later. They have no logger.
package extension

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// HookType is the point at which a hook is called.
type HookType string

// BeforeDeleteHook is called before Delete.
const BeforeDeleteHook HookType = "BeforeDelete"

// HookResult is the result of a hook.
type HookResult struct{ AbortReconcile bool }

// ReconcileExtensionHook is a hook.
type ReconcileExtensionHook func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, HookType) (*HookResult, error)

// ReconcileExtensionHooks are the hooks of a deployer.
type ReconcileExtensionHooks map[HookType][]ReconcileExtensionHook

// RegisterHook adds a hook.
func (h ReconcileExtensionHooks) RegisterHook(hook ReconcileExtensionHook, types ...HookType) ReconcileExtensionHooks {
	for _, t := range types {
		h[t] = append(h[t], hook)
	}
	return h
}

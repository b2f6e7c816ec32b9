// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/extension"
)

// This hook forces a run of an item every ten minutes as long as the item has an annotation.
func Example() {
	refresh := func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		if di.Annotations["example.org/refresh"] != "true" {
			return nil, nil // no opinion
		}
		return &extension.HookResult{
			AbortReconcile:  false, // force a run even if nothing has changed
			ReconcileResult: reconcile.Result{RequeueAfter: 10 * time.Minute},
		}, nil
	}

	hooks := extension.ReconcileExtensionHooks{}.
		RegisterHook(extension.WithName("refresh", refresh), extension.ShouldReconcileHook)

	item := &lsv1alpha1.DeployItem{}
	item.Annotations = map[string]string{"example.org/refresh": "true"}
	result, err := hooks.ExecuteHooks(context.Background(), logr.Discard(), item, nil, extension.ShouldReconcileHook)
	fmt.Println(result.AbortReconcile, result.ReconcileResult.RequeueAfter, err)
	// Output: false 10m0s <nil>
}

// A setup combines a hook with its hook types in one value, so that other code can register the hook.
func ExampleReconcileExtensionHooks_RegisterHookSetup() {
	audit := extension.OnItem(func(_ context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		log.Info("about to change something", "phase", di.Status.Phase)
		return nil
	})

	setup := extension.ReconcileExtensionHookSetup{
		Hook:      audit,
		HookTypes: []extension.HookType{extension.BeforeAnyReconcileHook, extension.EndHook},
	}
	hooks := extension.ReconcileExtensionHooks{}.RegisterHookSetup(setup)

	fmt.Println(len(hooks), hooks.Validate())
	// Output: 2 <nil>
}

// This example merges results. The two functions merge AbortReconcile differently.
func ExampleAggregateHookResults() {
	tenMinutes := &extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: 10 * time.Minute}}
	oneHour := &extension.HookResult{ReconcileResult: reconcile.Result{RequeueAfter: time.Hour}}
	abort := &extension.HookResult{AbortReconcile: true}

	merged := extension.AggregateHookResults(nil, oneHour, abort, tenMinutes)
	inverted := extension.AggregateHookResultsWithInvertedAbortPriority(nil, oneHour, abort, tenMinutes)
	fmt.Println(merged.AbortReconcile, merged.ReconcileResult.RequeueAfter)
	fmt.Println(inverted.AbortReconcile, inverted.ReconcileResult.RequeueAfter)
	fmt.Println(extension.AggregateHookResults(nil, nil))
	// Output:
	// true 10m0s
	// false 10m0s
	// <nil>
}

// This example applies decorators to a hook, from the innermost to the outermost.
func ExampleWithName() {
	askQuota := extension.OnItem(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) error {
		return fmt.Errorf("quota service: %w", context.DeadlineExceeded)
	})
	isLarge := func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) bool {
		return di.Annotations["example.org/size"] == "large"
	}

	hook := extension.WithTimeout(5*time.Second, askQuota)
	hook = extension.WithFailurePolicy(extension.FailurePolicyRetry(2), hook)
	hook = extension.When(isLarge, hook)
	hook = extension.WithName("quota", hook)

	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(hook, extension.BeforeReconcileHook)
	item := &lsv1alpha1.DeployItem{}
	item.Annotations = map[string]string{"example.org/size": "large"}
	_, err := hooks.ExecuteHooks(context.Background(), logr.Discard(), item, nil, extension.BeforeReconcileHook)
	fmt.Println(err)
	// Output: hook BeforeReconcile[0] (quota): failed 3 times: quota service: context deadline exceeded
}

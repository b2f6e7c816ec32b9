// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/extension"
)

// OnStart returns a hook that needs neither an item nor a target.
func ExampleOnStart() {
	checkLicence := extension.OnStart(func(context.Context, logr.Logger) error { return errors.New("the licence has expired") })
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(checkLicence, extension.StartHook)

	_, err := hooks.ExecuteHooks(context.Background(), logr.Discard(), &lsv1alpha1.DeployItem{}, nil, extension.StartHook)
	fmt.Println(err)
	// Output: hook Start[0]: the licence has expired
}

// OnItem returns a hook whose result is always nil, so the hook does not influence the flow. One hook can be registered
// for several hook types.
func ExampleOnItem() {
	audit := extension.OnItem(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		fmt.Println("deleting", di.Name)
		return nil
	})
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(audit, extension.BeforeDeleteHook, extension.BeforeAbortHook)

	item := &lsv1alpha1.DeployItem{}
	item.Name = "web"
	result, err := hooks.ExecuteHooks(context.Background(), logr.Discard(), item, nil, extension.BeforeDeleteHook)
	fmt.Println(result, err)
	// Output:
	// deleting web
	// <nil> <nil>
}

// A hook can end the run before the deployer is called.
func ExampleHookResult() {
	freeze := func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		if di.Labels["example.org/frozen"] == "true" {
			return &extension.HookResult{AbortReconcile: true}, nil
		}
		return nil, nil // no opinion
	}
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(freeze, extension.BeforeReconcileHook)

	item := &lsv1alpha1.DeployItem{}
	item.Labels = map[string]string{"example.org/frozen": "true"}
	result, err := hooks.ExecuteHooks(context.Background(), logr.Discard(), item, nil, extension.BeforeReconcileHook)
	fmt.Println(result.AbortReconcile, err)
	// Output: true <nil>
}

// With the policy Ignore, an error of a hook does not end the run.
func ExampleWithFailurePolicy() {
	notify := extension.OnItem(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) error {
		return errors.New("the chat is down")
	})
	hooks := extension.ReconcileExtensionHooks{}.
		RegisterHook(extension.WithFailurePolicy(extension.FailurePolicyIgnore, notify), extension.EndHook)

	_, err := hooks.ExecuteHooks(context.Background(), logr.Discard(), &lsv1alpha1.DeployItem{}, nil, extension.EndHook)
	fmt.Println(err)
	// Output: <nil>
}

// AllHookTypes returns the points of the flow at which hooks are called.
func ExampleAllHookTypes() {
	for _, t := range extension.AllHookTypes() {
		fmt.Println(t)
	}
	// Output:
	// Start
	// DuringResponsibilityCheck
	// AfterResponsibilityCheck
	// ShouldReconcile
	// BeforeAnyReconcile
	// BeforeAbort
	// BeforeForceReconcile
	// BeforeDelete
	// BeforeReconcile
	// End
}

// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/patch"
)

// labelPhase is a hook that copies the phase of the last run to a label.
func labelPhase(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	patch.FromContext(ctx).Labels().Set("example.org/last-phase", string(di.Status.Phase))
	return nil, nil
}

// guard is a finalizer of another controller.
const guard = "example.org/guard"

// addGuardFinalizer is a hook that adds the finalizer guard and keeps all other finalizers.
func addGuardFinalizer(ctx context.Context, _ logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	patch.FromContext(ctx).Append(patch.Typed(func(di *lsv1alpha1.DeployItem) error {
		if di.DeletionTimestamp == nil && !slices.Contains(di.Finalizers, guard) {
			di.Finalizers = append(di.Finalizers, guard)
		}
		return nil
	}))
	return nil, nil
}

// Hooks record changes in the patch that patch.FromContext returns. The library includes these changes in its own
// writes.
func Example_patch() {
	hooks := extension.ReconcileExtensionHooks{}
	hooks.RegisterHook(labelPhase, extension.ShouldReconcileHook)
	hooks.RegisterHook(addGuardFinalizer, extension.ShouldReconcileHook)

	di, running := &lsv1alpha1.DeployItem{}, &patch.Patch{}
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Failed
	ctx := patch.NewContext(context.Background(), running) // the library does this
	if _, err := hooks.ExecuteHooks(ctx, logr.Discard(), di, nil, extension.ShouldReconcileHook); err != nil {
		fmt.Println(err)
	}
	changed, err := running.ApplyToCopy(di)
	fmt.Println(changed.GetLabels(), changed.GetFinalizers(), err)
	// Output: map[example.org/last-phase:Failed] [example.org/guard] <nil>
}

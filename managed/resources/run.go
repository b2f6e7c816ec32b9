// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// Run is one call of a deployer for an item. Its methods return errors that the deployer must return unchanged (see
// package managed). Use a Run only in the goroutine of the call.
type Run struct {
	// Managed is the part of the call that package managed implements. Call Managed.Connect before the steps of a
	// deployment.
	Managed *managed.Run
	// Status is the decoded provider status of the item. Whenever the inventory changes, the Run encodes the Status,
	// including Status.Fields, and sets it in the item in memory.
	Status *Status
	// Config is the configuration of the item. The caller sets it after Begin. Only Delete works without it.
	Config *Config
	// EngineOptions contains the options of the apply engine, such as its strategy. Run sets PruneGroups and MaxInventory.
	EngineOptions apply.Options

	watched []observe.WatchRequest // select the objects that the last custom check or the last call of Export has read
}

// Begin decodes the provider status of an item and returns a Run for the current call. It returns a
// deployerlib.NewConfigError if the status cannot be decoded, or the error of [managed.ResourceManager.Begin].
func Begin(ctx context.Context, manager *managed.ResourceManager, format StatusFormat, di *lsv1alpha1.DeployItem) (*Run, error) {
	status, err := format.Decode(di)
	if err != nil {
		return nil, err
	}
	up, err := manager.Begin(ctx, di, status.Inventory, func(inventory apply.Inventory) error {
		status.Inventory = inventory
		return format.Store(di, status)
	})
	return &Run{Managed: up, Status: status}, err
}

// getEngineOptions returns the options of the apply engine. If pruneGroups is nil, the built-in order is used.
func (r *Run) getEngineOptions(pruneGroups []apply.DeletionGroup) apply.Options {
	out := r.EngineOptions
	out.PruneGroups, out.MaxInventory = pruneGroups, maxInventory
	return out
}

// Deploy runs all steps of a deployment until one of them fails or has to wait: Apply, CheckAllReady, SetExports, the
// patches of apply.Desired.PatchAfterDeployment, and TryCleanUpFormer. If a step has to wait, the next run starts when
// a watch reports a change. The values for exports without fromResource are in values; see Options.ExportValues.
func (r *Run) Deploy(ctx context.Context, desired []apply.Desired, values map[string]any) error {
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return r.Apply(ctx, desired) },
		r.CheckAllReady,
		func(ctx context.Context) error { return r.SetExports(ctx, values) },
		func(ctx context.Context) error {
			return r.Managed.AfterDeployment(ctx, desired, r.getEngineOptions(nil))
		},
		r.TryCleanUpFormer,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.Managed.Finish()
	return nil
}

// Apply applies the objects of the item to its target, and deletes the objects that the item no longer contains. If the
// inventory was lost, Apply first restores it. If managed.Options.CleanUpFirst is set, Apply first deletes the objects
// in former clusters.
func (r *Run) Apply(ctx context.Context, desired []apply.Desired) error {
	if err := r.restoreInventory(ctx, desired); err != nil {
		return err
	}
	groups, err := r.toGroups(ctx, "deletionGroupsDuringUpdate", r.Config.DeletionGroupsDuringUpdate)
	if err != nil {
		return err
	}
	if err := r.Managed.CleanUpFormerFirst(ctx, r.getEngineOptions(nil), r.listFormerGroups()); err != nil {
		return err
	}
	_, err = r.Managed.Apply(ctx, desired, r.getEngineOptions(groups))
	return err
}

// TryCleanUpFormer deletes the item's objects in clusters that the item no longer uses, as far as this is possible now.
func (r *Run) TryCleanUpFormer(ctx context.Context) error {
	_, err := r.Managed.TryCleanUpFormer(ctx, r.getEngineOptions(nil), r.listFormerGroups())
	return err
}

// CheckAllReady checks whether all objects of the item are ready, and whether all custom checks of the item succeed.
// If not, it returns an error that makes the item wait.
func (r *Run) CheckAllReady(ctx context.Context) error {
	if !r.Config.DisableDefaultReadiness {
		if err := r.Managed.CheckAllReady(ctx, r.Config.ReadinessTimeout); err != nil {
			return err
		}
	}
	for i, check := range r.Config.Checks {
		if err := r.check(ctx, fmt.Sprintf("readinessChecks.custom[%d]", i), check); err != nil {
			return err
		}
	}
	return nil
}

// check runs the custom readiness check at the path at in the configuration.
func (r *Run) check(ctx context.Context, at string, check Check) error {
	r.watched = nil
	result, err := check.Run(ctx, objectLookup{run: r, path: "spec.config." + at + ".targetName", name: ptr.Deref(check.Spec.TargetName, "")})
	if spec, ok := errors.AsType[*readiness.SpecError](err); ok {
		return newConfigError(at+"."+spec.Path, "%s", spec.Reason)
	}
	if err != nil || result.IsReady() {
		return err
	}
	bound, step := r.Config.ReadinessTimeout, "readiness"
	if check.Timeout > 0 && (bound == 0 || check.Timeout < bound) {
		bound, step = check.Timeout, "check "+check.Spec.Name
	}
	return r.Managed.NewWaitError(step, bound, result.Message, r.Managed.WatchUntilChanged(r.watched))
}

// SetExports stores the exported values when all of them exist. Until then, it returns an error that makes the item
// wait. An export from an object that is done and no longer exists keeps its stored value. If the item has no exports,
// SetExports deletes the values that were stored earlier. The values for exports without fromResource are in values.
// SetExports returns an error of deployerlib.NewConfigError if one of these values is missing, or if all values
// together do not fit into a Secret.
func (r *Run) SetExports(ctx context.Context, values map[string]any) error {
	secrets := r.Managed.Manager.GetSecretClient()
	if len(r.Config.Exports) == 0 {
		return deployerlib.DeleteExport(ctx, secrets, r.Managed.Item)
	}
	r.watched = nil
	found, waiting, err := readExports(ctx, r.Config.Exports, r.readExported, values)
	if err == nil {
		waiting, err = r.addStoredValues(ctx, found, waiting)
	}
	if err != nil {
		return err
	}
	if len(waiting) > 0 {
		missing := waiting[0]
		return r.Managed.NewWaitError("export "+missing.key, missing.timeout, fmt.Sprintf("export %q: %s", missing.key, missing.reason), r.Managed.WatchUntilChanged(r.watched))
	}
	return deployerlib.WriteExport(ctx, secrets, r.Managed.Item, found)
}

// addStoredValues adds to `values` the stored values of exports whose objects are done and no longer exist. It returns
// the exports that are still missing, or an error of deployerlib.NewConfigError if a value was never stored.
func (r *Run) addStoredValues(ctx context.Context, values map[string]any, waiting []missingExport) (missing []missingExport, err error) {
	var stored map[string]any
	for _, one := range waiting {
		if one.done == nil {
			missing = append(missing, one)
			continue
		}
		if stored == nil {
			if stored, err = r.readStoredExports(ctx); err != nil {
				return nil, err
			}
		}
		value, found, _ := unstructured.NestedFieldNoCopy(stored, one.done.key...)
		if !found {
			return nil, newConfigError(one.done.configPath, "%s, and no earlier value is stored", one.reason)
		}
		if !merge(values, setNested(one.done.key, value)) {
			return nil, newConfigError(one.done.configPath+".key", "%q conflicts with the key of another export", one.key)
		}
	}
	return missing, nil
}

// readStoredExports returns the values in the export Secret of the item. The result is empty, but not nil, if there are
// none.
func (r *Run) readStoredExports(ctx context.Context) (map[string]any, error) {
	values := map[string]any{}
	ref := r.Managed.Item.Status.ExportReference
	if ref == nil {
		return values, nil
	}
	secret := &corev1.Secret{}
	err := r.Managed.Manager.GetSecretClient().Get(ctx, types.NamespacedName{Namespace: r.Managed.Item.Namespace, Name: ref.Name}, secret)
	if err != nil && !notfound.IsProof(err) {
		return nil, fmt.Errorf("read export Secret %s: %w", ref.Name, err)
	}
	if err := json.Unmarshal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], &values); err != nil || values == nil {
		return map[string]any{}, nil //nolint:nilerr // content that cannot be read contains no values
	}
	return values, nil
}

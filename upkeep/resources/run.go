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
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/upkeep"
)

// Run is one call of a deployer for an item. Its methods return errors that the deployer must return unchanged (see
// package upkeep). Use a Run only in the goroutine of the call.
type Run struct {
	// Up is the part of the call that package upkeep implements. Call Up.Connect before the steps of a deployment.
	Up *upkeep.Run
	// Status is the decoded provider status of the item. Whenever the inventory changes, the Run encodes the Status,
	// including Status.Fields, and sets it in the item in memory.
	Status *Status
	// Config is the configuration of the item. The caller sets it after Begin. Only Delete works without it.
	Config *Config
	// Engine contains the options of the apply engine, such as its strategy. Run sets PruneGroups and MaxInventory.
	Engine apply.Options

	read []observe.WatchRequest // select the objects that the last custom check or the last call of Export has read
}

// Begin decodes the provider status of an item and returns a Run for the current call. It returns a
// deployerlib.ConfigError if the status cannot be decoded, or the error of [upkeep.Keeper.Begin].
func Begin(ctx context.Context, keeper *upkeep.Keeper, format StatusFormat, di *lsv1alpha1.DeployItem) (*Run, error) {
	status, err := format.Decode(di)
	if err != nil {
		return nil, err
	}
	up, err := keeper.Begin(ctx, di, status.Inventory, func(inventory apply.Inventory) error {
		status.Inventory = inventory
		return format.Store(di, status)
	})
	return &Run{Up: up, Status: status}, err
}

// engine returns the options of the apply engine. If pruneGroups is nil, the built-in order is used.
func (r *Run) engine(pruneGroups []apply.Group) apply.Options {
	out := r.Engine
	out.PruneGroups, out.MaxInventory = pruneGroups, maxInventory
	return out
}

// Deploy runs all steps of a deployment until one of them fails or has to wait: Apply, AwaitReady, Export, the patches
// of apply.Desired.PatchAfterDeployment, and CleanUp. If a step has to wait, the next run starts when a watch reports a
// change. The parameter `values` contains the values for exports without fromResource; see Options.ExportValues.
func (r *Run) Deploy(ctx context.Context, desired []apply.Desired, values map[string]any) error {
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return r.Apply(ctx, desired) },
		r.AwaitReady,
		func(ctx context.Context) error { return r.Export(ctx, values) },
		func(ctx context.Context) error { return r.Up.AfterDeployment(ctx, desired, r.engine(nil)) },
		r.CleanUp,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.Up.Finished()
	return nil
}

// Apply applies the objects of the item to its target, and deletes the objects that the item no longer contains. If the
// inventory was lost, Apply first restores it. If upkeep.Options.CleanUpFirst is set, Apply first deletes the objects
// in former clusters.
func (r *Run) Apply(ctx context.Context, desired []apply.Desired) error {
	if err := r.recover(ctx, desired); err != nil {
		return err
	}
	groups, err := r.groups(ctx, "deletionGroupsDuringUpdate", r.Config.DeletionGroupsDuringUpdate)
	if err != nil {
		return err
	}
	if err := r.Up.LeaveFirst(ctx, r.engine(nil), r.formerGroups()); err != nil {
		return err
	}
	_, err = r.Up.Apply(ctx, desired, r.engine(groups))
	return err
}

// CleanUp deletes the item's objects in clusters that the item no longer uses, as far as this is possible now.
func (r *Run) CleanUp(ctx context.Context) error {
	_, err := r.Up.CleanUp(ctx, r.engine(nil), r.formerGroups())
	return err
}

// AwaitReady checks whether all objects of the item are ready, and whether all custom checks of the item succeed. If
// not, it returns an error that makes the item wait.
func (r *Run) AwaitReady(ctx context.Context) error {
	if !r.Config.DisableDefaultReadiness {
		if err := r.Up.AwaitReady(ctx, r.Config.ReadinessTimeout); err != nil {
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

// check runs a custom readiness check. The parameter `at` is the path of the check in the configuration.
func (r *Run) check(ctx context.Context, at string, check Check) error {
	r.read = nil
	result, err := check.Run(ctx, objects{run: r, path: "spec.config." + at + ".targetName", name: ptr.Deref(check.Spec.TargetName, "")})
	if spec, ok := errors.AsType[*readiness.SpecError](err); ok {
		return fault(at+"."+spec.Path, "%s", spec.Reason)
	}
	if err != nil || result.Ready() {
		return err
	}
	bound, step := r.Config.ReadinessTimeout, "readiness"
	if check.Timeout > 0 && (bound == 0 || check.Timeout < bound) {
		bound, step = check.Timeout, "check "+check.Spec.Name
	}
	return r.Up.Wait(step, bound, result.Reason, r.Up.WatchUntilChanged(r.read))
}

// Export stores the exported values when all of them exist. Until then, it returns an error that makes the item wait.
// An export from an object that is done and no longer exists keeps its stored value. If the item has no exports, Export
// deletes the values that were stored earlier. The parameter `values` contains the
// values for exports without fromResource. Export returns a deployerlib.ConfigError if one of these values is missing,
// or if all values together do not fit into a Secret.
func (r *Run) Export(ctx context.Context, values map[string]any) error {
	secrets := r.Up.Keeper.Secrets()
	if len(r.Config.Exports) == 0 {
		return deployerlib.DeleteExport(ctx, secrets, r.Up.Item)
	}
	r.read = nil
	found, waiting, err := readExports(ctx, r.Config.Exports, r.exportedObject, values)
	if err == nil {
		waiting, err = r.keepValues(ctx, found, waiting)
	}
	if err != nil {
		return err
	}
	if len(waiting) > 0 {
		missing := waiting[0]
		return r.Up.Wait("export "+missing.key, missing.timeout, fmt.Sprintf("export %q: %s", missing.key, missing.reason), r.Up.WatchUntilChanged(r.read))
	}
	return deployerlib.WriteExport(ctx, secrets, r.Up.Item, found)
}

// keepValues adds to `values` the stored values of exports whose objects are done and no longer exist. It returns the
// exports that are still missing, or a deployerlib.ConfigError if a value was never stored.
func (r *Run) keepValues(ctx context.Context, values map[string]any, waiting []awaited) (missing []awaited, err error) {
	var stored map[string]any
	for _, one := range waiting {
		if one.done == nil {
			missing = append(missing, one)
			continue
		}
		if stored == nil {
			if stored, err = r.storedExports(ctx); err != nil {
				return nil, err
			}
		}
		value, found, _ := unstructured.NestedFieldNoCopy(stored, one.done.key...)
		if !found {
			return nil, fault(one.done.at, "%s, and no earlier value is stored", one.reason)
		}
		if !merge(values, nest(one.done.key, value)) {
			return nil, fault(one.done.at+".key", "%q conflicts with the key of another export", one.key)
		}
	}
	return missing, nil
}

// storedExports returns the values in the export Secret of the item. The result is empty, but not nil, if there are none.
func (r *Run) storedExports(ctx context.Context) (map[string]any, error) {
	values := map[string]any{}
	ref := r.Up.Item.Status.ExportReference
	if ref == nil {
		return values, nil
	}
	secret := &corev1.Secret{}
	err := r.Up.Keeper.Secrets().Get(ctx, types.NamespacedName{Namespace: r.Up.Item.Namespace, Name: ref.Name}, secret)
	if err != nil && !notfound.IsProof(err) {
		return nil, fmt.Errorf("read export Secret %s: %w", ref.Name, err)
	}
	if err := json.Unmarshal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], &values); err != nil || values == nil {
		return map[string]any{}, nil //nolint:nilerr // content that cannot be read contains no values
	}
	return values, nil
}

// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errUnsupported is the error for features of Landscaper that Install does not support.
var errUnsupported = errors.New("not supported by landscapertest")

// Install processes an existing Installation, as Landscaper does when the operation annotation requests a reconcile. It
// reads the imports and renders the deploy executions of the inline blueprint. It then creates or updates the deploy
// items in the order of their dependencies and waits for the end of their runs. Finally, it writes the exports to
// DataObjects and sets the phase of the Installation to Succeeded. If Install returns an error, the phase is Failed.
//
// The name of an item consists of the name of the Installation, a hyphen, and the item's name in the blueprint. Install
// supports imports of data and of single Targets, exports of data, and executions of the type GoTemplate with the
// functions of sprig. It returns an error for anything else. It does not validate values against their JSON schemas. It
// does not delete items that a changed blueprint no longer contains.
func (l *Landscaper) Install(ctx context.Context, installation types.NamespacedName) error {
	in := &lsv1alpha1.Installation{}
	if err := l.client.Get(ctx, installation, in); err != nil {
		return fmt.Errorf("get Installation %s: %w", installation, err)
	}
	i := &installer{ls: l, in: in}
	phase, err := lsv1alpha1.InstallationPhases.Succeeded, i.install(ctx)
	if err != nil {
		phase, err = lsv1alpha1.InstallationPhases.Failed, fmt.Errorf("install %s: %w", installation, err)
	}
	return errors.Join(err, i.recordPhase(ctx, phase))
}

// Uninstall deletes the deploy items of an Installation, dependents before their dependencies. It then deletes the
// exports, and finally the Installation. It returns when all of these objects are gone.
func (l *Landscaper) Uninstall(ctx context.Context, installation types.NamespacedName) error {
	in := &lsv1alpha1.Installation{}
	if err := l.client.Get(ctx, installation, in); err != nil {
		return fmt.Errorf("get Installation %s: %w", installation, err)
	}
	list := &lsv1alpha1.DeployItemList{}
	err := l.client.List(ctx, list, client.InNamespace(in.Namespace), client.MatchingLabels{lsv1alpha1.ExecutionManagedByLabel: in.Name})
	if err != nil {
		return fmt.Errorf("list the deploy items of Installation %s: %w", installation, err)
	}
	dependsOn := map[string][]string{}
	for i := range list.Items {
		names := list.Items[i].Annotations[lsv1alpha1.ExecutionDependsOnAnnotation]
		dependsOn[list.Items[i].Labels[lsv1alpha1.ExecutionManagedNameLabel]] = strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
	}
	order, err := groupByDependency(dependsOn)
	if err != nil {
		return fmt.Errorf("uninstall %s: %w", installation, err)
	}
	var keys []types.NamespacedName
	for _, name := range slices.Concat(order...) {
		keys = append(keys, itemKey(in, name))
	}
	slices.Reverse(keys)
	if err := l.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("uninstall %s: %w", installation, err)
	}
	for _, export := range in.Spec.Exports.Data {
		object := &lsv1alpha1.DataObject{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: export.DataRef}}
		if err := client.IgnoreNotFound(l.client.Delete(ctx, object)); err != nil {
			return fmt.Errorf("delete DataObject %s: %w", export.DataRef, err)
		}
	}
	return client.IgnoreNotFound(l.client.Delete(ctx, in))
}

// installer processes one Installation.
type installer struct {
	ls *Landscaper
	in *lsv1alpha1.Installation
}

// itemKey returns the key of an item of an Installation.
func itemKey(in *lsv1alpha1.Installation, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: in.Namespace, Name: in.Name + "-" + name}
}

// recordPhase removes the operation annotation and writes the phase of the Installation.
func (i *installer) recordPhase(ctx context.Context, phase lsv1alpha1.InstallationPhase) error {
	before := i.in.DeepCopy()
	delete(i.in.Annotations, lsv1alpha1.OperationAnnotation)
	if err := i.ls.client.Patch(ctx, i.in, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch Installation %s: %w", client.ObjectKeyFromObject(i.in), err)
	}
	status := map[string]any{"observedGeneration": i.in.Generation, "phase": phase}
	raw, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	if err := i.ls.client.Status().Patch(ctx, i.in, client.RawPatch(types.MergePatchType, raw)); err != nil {
		return fmt.Errorf("patch status of Installation %s: %w", client.ObjectKeyFromObject(i.in), err)
	}
	return nil
}

func (i *installer) install(ctx context.Context) error {
	b, err := readBlueprint(i.in)
	if err != nil {
		return err
	}
	imports, err := i.readImports(ctx)
	if err != nil {
		return err
	}
	values := map[string]any{"imports": imports}
	items, err := b.renderItems(values)
	if err != nil {
		return err
	}
	exported, err := i.applyItems(ctx, items)
	if err != nil {
		return err
	}
	values["deployitems"] = exported
	exports, err := b.renderExports(values)
	if err != nil {
		return err
	}
	return i.writeExports(ctx, exports)
}

// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyItems deploys the items of an Installation, each after its dependencies. It returns the values that the items
// export.
func (i *installer) applyItems(ctx context.Context, items []itemTemplate) (map[string]any, error) {
	templates, dependsOn := map[string]itemTemplate{}, map[string][]string{}
	for _, item := range items {
		if _, ok := templates[item.Name]; ok {
			return nil, fmt.Errorf("two deploy items have the name %q", item.Name)
		}
		templates[item.Name], dependsOn[item.Name] = item, item.DependsOn
	}
	order, err := groupByDependency(dependsOn)
	if err != nil {
		return nil, err
	}
	exported := map[string]any{}
	for _, wave := range order {
		jobs := map[string]string{}
		for _, name := range wave {
			if jobs[name], err = i.applyTemplate(ctx, templates[name]); err != nil {
				return nil, err
			}
		}
		for _, name := range wave {
			if exported[name], err = i.waitForExport(ctx, itemKey(i.in, name), jobs[name]); err != nil {
				return nil, fmt.Errorf("deploy item %s: %w", name, err)
			}
		}
	}
	return exported, nil
}

// applyTemplate creates or updates an item, requests a run, and returns the ID of the job.
func (i *installer) applyTemplate(ctx context.Context, item itemTemplate) (string, error) {
	di, err := newItem(i.in, item)
	if err != nil {
		return "", err
	}
	old := &lsv1alpha1.DeployItem{}
	err = i.ls.client.Get(ctx, keyOf(di), old)
	switch {
	case apierrors.IsNotFound(err):
		owned := *i.ls
		owned.options.ManagedBy, owned.options.DeployerType = i.in.Name, i.ls.options.DeployerType || i.ls.protocol.hasJobs()
		err = errors.Join(i.ls.EnsureContext(ctx, i.in.Namespace), owned.Create(ctx, di))
	case err == nil:
		changed := old.DeepCopy()
		changed.Spec = di.Spec
		i.ls.protocol.prepareUpdate(changed, i.ls.now())
		err = i.ls.client.Patch(ctx, changed, client.MergeFrom(old))
	}
	if err != nil || !i.ls.protocol.hasJobs() {
		return "", err
	}
	return i.ls.Trigger(ctx, keyOf(di))
}

// newItem returns the deploy item that a template describes.
func newItem(in *lsv1alpha1.Installation, item itemTemplate) (*lsv1alpha1.DeployItem, error) {
	key := itemKey(in, item.Name)
	di := &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: item.Labels,
			Annotations: map[string]string{lsv1alpha1.ExecutionDependsOnAnnotation: strings.Join(item.DependsOn, ",")},
		},
		Spec: lsv1alpha1.DeployItemSpec{
			Type: item.Type, Context: cmp.Or(in.Spec.Context, lsv1alpha1.DefaultContextName), Configuration: item.Config,
			Timeout: item.Timeout, UpdateOnChangeOnly: item.UpdateOnChangeOnly,
		},
	}
	metav1.SetMetaDataLabel(&di.ObjectMeta, lsv1alpha1.ExecutionManagedNameLabel, item.Name)
	if item.Target == nil {
		return di, nil
	}
	name := item.Target.Name
	if item.Target.Import != "" {
		i := slices.IndexFunc(in.Spec.Imports.Targets, func(t lsv1alpha1.TargetImport) bool { return t.Name == item.Target.Import })
		if i < 0 {
			return nil, fmt.Errorf("deploy item %s: the Installation has no Target import %q", item.Name, item.Target.Import)
		}
		name = in.Spec.Imports.Targets[i].Target
	}
	di.Spec.Target = &lsv1alpha1.ObjectReference{Namespace: in.Namespace, Name: name}
	return di, nil
}

// waitForExport waits for the end of a run. It returns the value that the item exports, or nil if the item exports
// nothing. If the run did not succeed, it returns an error.
func (i *installer) waitForExport(ctx context.Context, item types.NamespacedName, job string) (any, error) {
	di, err := i.ls.WaitForJob(ctx, item, job)
	if err != nil {
		return nil, err
	}
	if di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
		return nil, fmt.Errorf("the run ended in phase %s: %s", di.Status.Phase, statusText(di))
	}
	if di.Status.ExportReference == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: di.Namespace, Name: di.Status.ExportReference.Name}
	if err := i.ls.client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get the export Secret: %w", err)
	}
	return decodeValue(secret.Data[lsv1alpha1.DataObjectSecretDataKey])
}

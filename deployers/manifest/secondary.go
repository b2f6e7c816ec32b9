// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/upkeep"
)

// objects reads objects of the item's targets, for custom checks and exports.
type objects struct {
	run  *run
	path string // the field that names the target
	name string // of the target, or "" for the item's own
}

// Get reads an object. The namespace of the reference is ignored for kinds that have none.
func (o objects) Get(ctx context.Context, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	from, err := o.run.up.Target(ctx, o.path, o.name)
	if err != nil {
		return nil, err
	}
	wanted := apply.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	mapping, err := from.Mapping(wanted.GVK())
	if err != nil || mapping == nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		wanted.Namespace = ""
	}
	live, err := o.run.up.Read(ctx, from, wanted)
	if err == nil {
		o.run.sights = append(o.run.sights, upkeep.SightOf(from, mapping.Resource, wanted, live))
	}
	return live, err
}

// List reads the objects of a kind with all the labels, in all namespaces.
func (o objects) List(ctx context.Context, gvk schema.GroupVersionKind, wanted map[string]string) ([]*unstructured.Unstructured, error) {
	from, err := o.run.up.Target(ctx, o.path, o.name)
	if err != nil {
		return nil, err
	}
	mapping, err := from.Mapping(gvk)
	if err != nil || mapping == nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	err = from.List(ctx, list, client.MatchingLabels(wanted))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	out := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	o.run.sights = append(o.run.sights, upkeep.SightOfAll(from, mapping.Resource, wanted, out))
	return out, nil
}

// exportGetter reads objects for exports, which name the target with each object.
type exportGetter struct{ run *run }

// Get reads an object of the target with a name.
func (g exportGetter) Get(ctx context.Context, targetName string, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	return objects{run: g.run, path: "spec.config.exports.targetName", name: targetName}.Get(ctx, ref)
}

// awaitChecks waits for the custom readiness checks.
func (r *run) awaitChecks(ctx context.Context) error {
	for i, check := range r.config.Checks {
		name := ""
		if check.Spec.TargetName != nil {
			name = *check.Spec.TargetName
		}
		r.sights = nil
		lookup := objects{run: r, path: fmt.Sprintf("spec.config.readinessChecks.custom[%d].targetName", i), name: name}
		result, err := check.Run(ctx, lookup)
		if spec, ok := errors.AsType[*readiness.SpecError](err); ok {
			return fault(fmt.Sprintf("readinessChecks.custom[%d].%s", i, spec.Path), "%s", spec.Reason)
		}
		if err != nil {
			return err
		}
		if result.Ready() {
			continue
		}
		bound, step := r.config.ReadinessTimeout, "readiness"
		if check.Timeout > 0 && (bound == 0 || check.Timeout < bound) {
			bound, step = check.Timeout, "check "+check.Spec.Name
		}
		return r.up.Wait(step, bound, result.Reason, r.up.LookOut(r.sights))
	}
	return nil
}

// export stores what the item exports, once all of it exists. Without exports, it deletes earlier ones.
func (r *run) export(ctx context.Context) error {
	if len(r.config.Exports) == 0 {
		return deployerlib.DeleteExport(ctx, r.up.Secrets(), r.up.Item)
	}
	r.sights = nil
	values, err := ReadExports(ctx, r.config.Exports, exportGetter{run: r})
	if err != nil {
		return err
	}
	if len(values.Waiting) > 0 {
		missing := values.Waiting[0]
		return r.up.Wait("export "+missing.Key, missing.Timeout, fmt.Sprintf("export %q: %s", missing.Key, missing.Reason), r.up.LookOut(r.sights))
	}
	raw, err := EncodeExports(values.Values)
	if err != nil {
		return err
	}
	return deployerlib.WriteExport(ctx, r.up.Secrets(), r.up.Item, raw)
}

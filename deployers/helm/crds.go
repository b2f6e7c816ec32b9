// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/managed/resources"
	"github.com/deployerkit/deployerkit/observe"
)

// fieldManager is the field manager of objects that do not belong to an item, such as CustomResourceDefinitions in the
// directory crds of a chart.
const fieldManager = "deployerkit-helm"

// policyOf returns the policy for the CustomResourceDefinitions in the directory crds of a chart.
func (c CRDsConfig) policyOf(upgrade bool) CRDPolicy {
	switch {
	case c.Delete:
		return CRDsCreateReplace
	case upgrade:
		return cmp.Or(c.Upgrade, CRDsSkip)
	}
	return cmp.Or(c.Install, CRDsCreate)
}

// installCRDs creates or replaces CustomResourceDefinitions according to a policy, and waits until the target serves
// their kinds. The definitions never belong to the item, because they may contain objects of other owners.
func installCRDs(ctx context.Context, r *resources.Run, definitions []release.Manifest, policy CRDPolicy) error {
	if policy == CRDsSkip {
		return nil
	}
	var waiting []string
	var watched []observe.WatchRequest
	for _, d := range definitions {
		live, err := installCRD(ctx, r.Managed.Cluster, d.Object, policy)
		if err != nil {
			return err
		}
		if !isEstablished(live) {
			waiting = append(waiting, live.GetName())
			watched = append(watched, r.Managed.Cluster.Watcher().ForObject(crdResource, client.ObjectKeyFromObject(live), live))
		}
	}
	if len(waiting) > 0 {
		meta.MaybeResetRESTMapper(r.Managed.Cluster.RESTMapper())
		return r.Managed.NewWaitError("CustomResourceDefinitions", 0, "CustomResourceDefinitions are not established yet: "+strings.Join(waiting, ", "), r.Managed.WatchUntilChanged(watched))
	}
	return nil
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installCRD creates or replaces a CustomResourceDefinition. It returns the definition in the target.
func installCRD(ctx context.Context, c client.Client, wanted *unstructured.Unstructured, policy CRDPolicy) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	switch {
	case apierrors.IsNotFound(err):
		live = wanted.DeepCopy()
		if err := c.Create(ctx, live, client.FieldOwner(fieldManager)); err != nil {
			return nil, crdError(wanted, "create", err)
		}
		return live, nil
	case err != nil:
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", wanted.GetName(), err)
	case policy != CRDsCreateReplace:
		return live, nil
	}
	if version := droppedVersion(live, wanted); version != "" {
		return nil, newConfigError("chart", "CustomResourceDefinition %s of the chart does not contain the version %s, in which objects are stored", wanted.GetName(), version)
	}
	applied := wanted.DeepCopy()
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return nil, crdError(wanted, "replace", err)
	}
	return applied, nil
}

// crdError returns the error of a write. An invalid definition is an error of the chart.
func crdError(wanted *unstructured.Unstructured, verb string, err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return newConfigError("chart", "%s CustomResourceDefinition %s: %s", verb, wanted.GetName(), err.Error())
	}
	return fmt.Errorf("%s CustomResourceDefinition %s: %w", verb, wanted.GetName(), err)
}

// droppedVersion returns a version in which objects are stored and that the new definition does not contain.
func droppedVersion(live, wanted *unstructured.Unstructured) string {
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(wanted.Object, "spec", "versions")
	for _, name := range stored {
		has := func(version any) bool {
			fields, _ := version.(map[string]any)
			return fields["name"] == name
		}
		if !slices.ContainsFunc(versions, has) {
			return name
		}
	}
	return ""
}

// isEstablished reports whether the target serves the kind of a CustomResourceDefinition.
func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["type"] == "Established" && fields["status"] == string(metav1.ConditionTrue)
	})
}

// ensureNamespace checks that the namespace of the release exists, and creates it if the configuration allows it. If
// the namespace is missing, the error is one of NewConfigError. The namespace never belongs to the item.
func ensureNamespace(ctx context.Context, c client.Client, config *Config) error {
	namespace := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: config.Namespace}, namespace)
	if err == nil || apierrors.IsForbidden(err) { // the API server checks the namespace once more
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("get namespace %s: %w", config.Namespace, err)
	}
	if !config.CreateNamespace {
		return newConfigError("namespace", "the namespace %q does not exist: create it, or set createNamespace", config.Namespace)
	}
	namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config.Namespace, Labels: map[string]string{"name": config.Namespace}}}
	if err := c.Create(ctx, namespace, client.FieldOwner(fieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", config.Namespace, err)
	}
	return nil
}

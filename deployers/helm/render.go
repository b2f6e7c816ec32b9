// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/targets"
)

// renderError converts an error of package release. An *release.Error becomes an error of deployerlib.NewConfigError.
func renderError(err error) error {
	fault, ok := errors.AsType[*release.Error](err)
	if !ok {
		return err
	}
	path := "chart"
	if fault.Reason == release.ReasonValues {
		path = "values"
	}
	return newConfigError(path, "%s", fault.Text)
}

// toCapabilities converts the capabilities of a target to the form in which templates use them.
func toCapabilities(found *targets.Capabilities) *release.Capabilities {
	out := &release.Capabilities{KubeVersion: found.Version}
	for _, group := range found.Groups {
		for _, served := range group.Versions {
			out.APIVersions = append(out.APIVersions, served.GroupVersion)
		}
	}
	seen := map[string]bool{}
	for _, list := range found.Resources {
		for i := range list.APIResources {
			if kind := list.GroupVersion + "/" + list.APIResources[i].Kind; !seen[kind] {
				seen[kind] = true
				out.APIVersions = append(out.APIVersions, kind)
			}
		}
	}
	return out
}

// findKind returns the mapping of a kind, or nil if the cluster does not serve the kind.
type findKind func(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error)

// lookupIn returns a function that reads objects for templates.
func lookupIn(c client.Reader, find findKind) release.Lookup {
	return func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		mapping, err := find(ctx, gvk)
		if err != nil || mapping == nil {
			return map[string]any{}, err
		}
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			namespace = ""
		}
		if name == "" {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind + "List"))
			if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return map[string]any{}, client.IgnoreNotFound(err)
			}
			return list.UnstructuredContent(), nil
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); apierrors.IsNotFound(err) {
			return map[string]any{}, nil
		} else if err != nil {
			return map[string]any{}, err
		}
		return object.Object, nil
	}
}

// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// reportHooks writes an event about the hooks that manifest mode leaves out.
func (r *run) reportHooks(hooks []release.Hook) {
	if len(hooks) == 0 {
		return
	}
	var names []string
	for _, hook := range hooks {
		names = append(names, describe(hook.Object))
	}
	r.Managed.RecordEvent(nil, corev1.EventTypeNormal, "HooksLeftOut", "hooks are not executed because helmDeployment is false: "+shorten(names))
}

// reportIgnored writes an event about objects in the directories crds of the chart that are not definitions.
func (r *run) reportIgnored(ignored []release.Manifest) {
	if len(ignored) == 0 {
		return
	}
	var names []string
	for _, m := range ignored {
		names = append(names, describe(m.Object))
	}
	r.Managed.RecordEvent(nil, corev1.EventTypeWarning, "ObjectsIgnored", "the directory crds of the chart may contain only CustomResourceDefinitions, these objects are ignored: "+shorten(names))
}

// describe returns the kind and the name of an object.
func describe(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// shorten joins at most ten names.
func shorten(names []string) string {
	const limit = 10
	if more := len(names) - limit; more > 0 {
		names = append(slices.Clone(names[:limit]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// checkMetadata checks that the labels and annotations of an object are strings, and do not have the prefix of the
// library.
func checkMetadata(path string, object *unstructured.Unstructured) error {
	for _, field := range []string{"labels", "annotations"} {
		values, _, err := unstructured.NestedFieldNoCopy(object.Object, "metadata", field)
		entries, isMap := values.(map[string]any)
		if err != nil || values != nil && !isMap {
			return newConfigError("chart", "%s: metadata.%s of %s must be an object", path, field, describe(object))
		}
		for key, value := range entries {
			if ownership.IsReserved(key) {
				return newConfigError("chart", "%s: metadata.%s of %s contains %q, the prefix %s is reserved", path, field, describe(object), key, ownership.Prefix)
			}
			if _, isText := value.(string); !isText && value != nil {
				return newConfigError("chart", "%s: metadata.%s[%q] of %s must be a string", path, field, key, describe(object))
			}
		}
	}
	return nil
}

// needsNamespace reports whether an object is to be created in a namespace that the objects do not contain themselves.
func needsNamespace(desired []apply.Desired, namespace string) bool {
	needed := false
	for _, one := range desired {
		if one.Object.GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() && one.Object.GetName() == namespace {
			return false
		}
		needed = needed || one.Object.GetNamespace() == namespace
	}
	return needed
}

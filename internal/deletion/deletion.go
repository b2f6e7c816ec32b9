// SPDX-License-Identifier: Apache-2.0

// Package deletion explains why an object that is being deleted still exists.
package deletion

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// These constants limit the text about the finalizers of an object.
const (
	maxNames = 8
	maxName  = 120
)

// Format returns the text about an object that is being deleted, for example "is being deleted, held by finalizers
// example.com/backup". For a Namespace, the text also contains what the namespace controller says about the objects
// that remain in the namespace.
func Format(obj *unstructured.Unstructured) string {
	return "is being deleted" + FormatFinalizers(ListFinalizers(obj)) + formatRemaining(obj)
}

// FormatFinalizers returns the part of a text that names the given finalizers. It returns "" if there are none.
func FormatFinalizers(finalizers []string) string {
	if len(finalizers) == 0 {
		return ""
	}
	return ", held by finalizers " + strings.Join(finalizers, ", ")
}

// ListFinalizers returns the finalizers of an object, including those in the spec of a Namespace. The number and the
// length of the names are limited. The argument may be nil.
func ListFinalizers(obj *unstructured.Unstructured) []string {
	if obj == nil {
		return nil
	}
	names := obj.GetFinalizers()
	if isNamespace(obj) {
		inSpec, _, _ := unstructured.NestedStringSlice(obj.Object, "spec", "finalizers")
		names = append(names, inSpec...)
	}
	return LimitNames(names)
}

// LimitNames returns the names without those that exceed the limits.
func LimitNames(names []string) []string {
	var out []string
	for _, name := range names[:min(len(names), maxNames)] {
		if len(name) > maxName {
			name = strings.ToValidUTF8(name[:maxName], "") + "…"
		}
		out = append(out, name)
	}
	return out
}

func isNamespace(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"}
}

// namespaceConditions lists the conditions in which the namespace controller explains why a Namespace still exists. The
// most specific condition comes first.
var namespaceConditions = []string{
	"NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure", "NamespaceDeletionDiscoveryFailure",
	"NamespaceDeletionGroupVersionParsingFailure", "NamespaceContentRemaining",
}

// formatRemaining returns the part of a text that explains what remains in a Namespace.
func formatRemaining(obj *unstructured.Unstructured) string {
	if !isNamespace(obj) {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, report := range namespaceConditions {
		for _, one := range conditions {
			condition, _ := one.(map[string]any)
			message, _ := condition["message"].(string)
			if condition["type"] == report && condition["status"] == "True" && message != "" {
				return ": " + message
			}
		}
	}
	return ""
}

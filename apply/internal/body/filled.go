// SPDX-License-Identifier: Apache-2.0

// Package body computes what the engine sends to the API server from the manifest of an object and the object in the
// cluster.
package body

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Field describes a field of one kind that another program fills after the object was created. A manifest may
// contain such a field without a value. This must not undo the work of the other program.
type Field struct {
	path []string // allItems stands for each item of a list
	// applies restricts the field to some objects of the kind. It is nil if the field belongs to all of them.
	applies func(manifest map[string]any) bool
	// ignores reports whether the value in the manifest is ignored. The default is isEmpty.
	ignores func(value any) bool
	// required means that the API server rejects an object without the field. The manifest must then contain it, even
	// without a value (see decide.Facts.apply).
	required bool
}

// allItems is an element of a path. It stands for each item of a list whose items have the key "name".
const allItems = "*"

// webhookFields are the fields of a webhook configuration that other programs fill. Such a program creates the
// certificate of the webhook's server.
var webhookFields = []Field{{path: []string{"webhooks", allItems, "clientConfig", "caBundle"}, ignores: isBlankBundle}}

// finalizersField is filled by controllers that have to clean up after an object. Any kind may have such a controller.
var finalizersField = Field{path: []string{"metadata", "finalizers"}}

// replicasField is filled by the API server, and then by an autoscaler.
var replicasField = []Field{{path: []string{"spec", "replicas"}, ignores: isNull}}

// filledFields lists the fields that the controllers of Kubernetes fill, admission plugins of the API server, or
// programs that create certificates. In the list of a kind, a field comes after the fields that it contains.
var filledFields = map[schema.GroupKind][]Field{
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: {
		{path: []string{"rules"}, applies: isAggregated, ignores: isAnything},
	},
	{Kind: "ServiceAccount"}: {{path: []string{"secrets"}}},
	{Kind: "Secret"}: {
		{path: []string{"data", corev1.ServiceAccountTokenKey}, applies: isTokenSecret},
		{path: []string{"data", corev1.ServiceAccountRootCAKey}, applies: isTokenSecret},
		{path: []string{"data", corev1.ServiceAccountNamespaceKey}, applies: isTokenSecret},
		{path: []string{"data"}, applies: isTokenSecret},
		{path: []string{"data", corev1.TLSCertKey}, applies: isTLSSecret, required: true},
		{path: []string{"data", corev1.TLSPrivateKeyKey}, applies: isTLSSecret, required: true},
		{path: []string{"data", corev1.ServiceAccountRootCAKey}, applies: isTLSSecret}, // the certificate of the issuer
	},
	{Kind: "PersistentVolumeClaim"}: {
		{path: []string{"spec", "volumeName"}},
		{path: []string{"spec", "storageClassName"}, ignores: isNull}, // "" means no class
	},
	{Kind: "PersistentVolume"}: {
		{path: []string{"spec", "claimRef", "uid"}},
		{path: []string{"spec", "claimRef", "resourceVersion"}},
		{path: []string{"spec", "claimRef"}},
	},
	{Kind: "Pod"}:                                 {{path: []string{"spec", "nodeName"}}},
	{Kind: "ReplicationController"}:               replicasField,
	{Group: "apps", Kind: "Deployment"}:           replicasField,
	{Group: "apps", Kind: "ReplicaSet"}:           replicasField,
	{Group: "apps", Kind: "StatefulSet"}:          replicasField,
	{Group: "networking.k8s.io", Kind: "Ingress"}: {{path: []string{"spec", "ingressClassName"}, ignores: isNull}}, // the default class
	{Group: "apiextensions.k8s.io", Kind: object.KindDefinition}: {
		{path: []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}, ignores: isBlankBundle},
	},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: {{path: []string{"spec", "caBundle"}, ignores: isBlankBundle}},

	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   webhookFields,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: webhookFields,
}

// isAggregated reports whether a controller computes the rules of a ClusterRole.
func isAggregated(manifest map[string]any) bool { return manifest["aggregationRule"] != nil }

// isTokenSecret reports whether a controller adds a token to a Secret.
func isTokenSecret(manifest map[string]any) bool {
	return manifest["type"] == string(corev1.SecretTypeServiceAccountToken)
}

// isTLSSecret reports whether a Secret contains a certificate. Other programs issue most certificates.
func isTLSSecret(manifest map[string]any) bool {
	return manifest["type"] == string(corev1.SecretTypeTLS)
}

func isAnything(any) bool { return true }

func isNull(value any) bool { return value == nil }

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

// IsBlank reports whether a decoded value contains only null, "", empty lists and objects with such values.
func IsBlank(value any) bool {
	all, isMap := value.(map[string]any)
	for _, field := range all {
		if !IsBlank(field) {
			return false
		}
	}
	return isMap || isEmpty(value)
}

// isBlankBundle reports whether a bundle of certificates contains at most white space. Generated manifests use such a
// bundle, for example "Cg==", as a placeholder.
func isBlankBundle(value any) bool {
	text, isText := value.(string)
	if !isText {
		return value == nil
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(bytes.TrimSpace(decoded)) == 0
}

// findFilledFields returns the filledFields that belong to an object.
func findFilledFields(obj *unstructured.Unstructured) []Field {
	out := []Field{finalizersField}
	for _, field := range filledFields[obj.GroupVersionKind().GroupKind()] {
		if field.applies == nil || field.applies(obj.Object) {
			out = append(out, field)
		}
	}
	return out
}

// isIgnored reports whether a value in a manifest is treated as if it were not there.
func (f Field) isIgnored(value any) bool {
	if f.ignores != nil {
		return f.ignores(value)
	}
	return isEmpty(value)
}

// DropFilled removes the filledFields from a manifest if their values are to be ignored, except required fields.
func DropFilled(manifest *unstructured.Unstructured) {
	for _, field := range findFilledFields(manifest) {
		if !field.required {
			dropField(manifest.Object, field.path, field.isIgnored)
		}
	}
}

// ListPlaceholders returns the required filledFields that a manifest contains without a value.
func ListPlaceholders(manifest *unstructured.Unstructured) (out []Field) {
	for _, field := range findFilledFields(manifest) {
		value, given, _ := unstructured.NestedFieldNoCopy(manifest.Object, field.path...)
		if field.required && given && field.isIgnored(value) {
			out = append(out, field)
		}
	}
	return out
}

// Without returns a copy of a manifest without the given fields, except those that the API server requires according
// to err.
func Without(manifest *unstructured.Unstructured, fields []Field, err error) *unstructured.Unstructured {
	out := manifest.DeepCopy()
	for _, field := range fields {
		if !field.IsRequired(err) {
			unstructured.RemoveNestedField(out.Object, field.path...)
		}
	}
	return out
}

// IsRequired reports whether the API server has rejected an object because it does not contain the field, a key of a
// map.
func (f Field) IsRequired(err error) bool {
	parent, key := f.path[:len(f.path)-1], f.path[len(f.path)-1]
	name := strings.Join(parent, ".") + "[" + key + "]"
	return slices.ContainsFunc(response.ListCauses(err), func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeFieldValueRequired && cause.Field == name
	})
}

func dropField(manifest map[string]any, path []string, ignores func(any) bool) {
	value, given := manifest[path[0]]
	switch {
	case !given:
	case len(path) == 1:
		if ignores(value) {
			delete(manifest, path[0])
		}
	case path[1] == allItems:
		items, _ := value.([]any)
		for _, item := range items {
			below, _ := item.(map[string]any)
			dropField(below, path[2:], ignores)
		}
	default:
		below, _ := value.(map[string]any)
		dropField(below, path[1:], ignores)
	}
}

// keepFilled copies the filledFields that the manifest does not contain, or contains as placeholders, from the live
// object to obj. It omits the fields that the item itself has set, because the manifest no longer contains their
// values.
func keepFilled(obj, live *unstructured.Unstructured) {
	owner, _ := ownership.GetOwner(obj)
	isOwn := func(path fieldpath.Path) bool { return ownership.IsFieldOwner(live, owner.FieldManager(), path) }
	for _, field := range findFilledFields(obj) {
		keepField(obj.Object, live.Object, field.path, nil, isOwn)
	}
	for _, field := range ListPlaceholders(obj) {
		value, filled, _ := unstructured.NestedFieldCopy(live.Object, field.path...)
		if filled && !isOwn(toFieldPath(field.path)) {
			_ = unstructured.SetNestedField(obj.Object, value, field.path...) // the parents are maps, because obj has the field
		}
	}
}

// toFieldPath returns the path of a field in managedFields.
func toFieldPath(names []string) (out fieldpath.Path) {
	for _, name := range names {
		out = append(out, fieldpath.PathElement{FieldName: &name})
	}
	return out
}

// keepField copies the field at a path from the live object. The two objects are at the path at.
func keepField(obj, live map[string]any, path []string, at fieldpath.Path, isOwn func(fieldpath.Path) bool) {
	name := path[0]
	value, given := obj[name]
	have, filled := live[name]
	at = append(at.Copy(), fieldpath.PathElement{FieldName: &name})
	switch {
	case !filled:
	case len(path) == 1:
		if !given && !isOwn(at) {
			obj[name] = runtime.DeepCopyJSONValue(have)
		}
	case path[1] == allItems:
		keepInItems(value, have, path[2:], at, isOwn)
	default:
		below, isMap := value.(map[string]any)
		from, isToo := have.(map[string]any)
		if isMap && isToo {
			keepField(below, from, path[1:], at, isOwn)
		}
	}
}

// keepInItems calls keepField for each pair of items with the same name in two lists.
func keepInItems(value, have any, path []string, at fieldpath.Path, isOwn func(fieldpath.Path) bool) {
	items, _ := value.([]any)
	others, _ := have.([]any)
	named := make(map[string]map[string]any, len(others))
	for _, other := range others {
		from, _ := other.(map[string]any)
		if name, isText := from["name"].(string); isText {
			named[name] = from
		}
	}
	for _, item := range items {
		below, _ := item.(map[string]any)
		name, _ := below["name"].(string)
		if from := named[name]; from != nil {
			key := fieldpath.KeyByFields("name", name)
			keepField(below, from, path, append(at.Copy(), fieldpath.PathElement{Key: key}), isOwn)
		}
	}
}

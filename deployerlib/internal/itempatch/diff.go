// SPDX-License-Identifier: Apache-2.0

package itempatch

import (
	"fmt"
	"maps"
	"reflect"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/internal/patching"
)

const (
	fieldMetadata = "metadata"
	fieldStatus   = "status"
)

// These are the fields of metadata that Diff sends, and the fields that identify the object. All other fields belong to
// the API server and are ignored.
var (
	metadataMaps   = []string{"labels", "annotations"}
	metadataLists  = []string{"finalizers", "ownerReferences"}
	identityFields = []string{"name", "namespace", "uid"}
)

// immutableReason is the text of the error for a difference in a field that patches cannot change.
const immutableReason = "must not change; only labels, annotations, finalizers, ownerReferences and status can be written"

// Diff returns the changes that convert the item `base` to the item `wanted`: a metadata patch (labels, annotations,
// finalizers, ownerReferences) and a status patch. The item `base` is the item as it was read. The patches contain the
// resourceVersion of this item, so they fail with a conflict if the stored item has changed since it was read. The item
// `wanted` is usually a changed deep copy of base. Both items must have the same Go type. Diff changes neither of them.
//
// A status that contains only zero values counts as absent, because a Go object always has a status. The schema
// requires an observedGeneration in a stored status, and all fields in a stored status.deployer. Diff therefore adds an
// observedGeneration of 0 if there is none, and includes status.deployer either as a whole or not at all.
//
// Diff returns a *jsondiff.FieldError if base and wanted differ in another field of the object, or in the name,
// namespace or UID.
func Diff(base, wanted client.Object) (Changes, error) {
	if b, ok := base.(*lsv1alpha1.DeployItem); ok {
		if w, ok := wanted.(*lsv1alpha1.DeployItem); ok {
			base, wanted = withoutEqualParts(b, w)
		}
	}
	have, err := toBody(base)
	if err != nil {
		return Changes{}, err
	}
	want, err := toBody(wanted)
	if err != nil {
		return Changes{}, err
	}
	if err := checkImmutable(have, want); err != nil {
		return Changes{}, err
	}
	out := Changes{Version: base.GetResourceVersion(), Metadata: diffMetadata(jsondiff.ObjectAt(have, fieldMetadata), jsondiff.ObjectAt(want, fieldMetadata))}
	for _, body := range []map[string]any{have, want} {
		if status, exists := body[fieldStatus]; exists && jsondiff.ObjectAt(body, fieldStatus) == nil {
			return Changes{}, &jsondiff.FieldError{Path: fieldStatus, Reason: fmt.Sprintf("is not an object but %T", status)}
		}
	}
	out.Status = emptyToNil(getStatusDiff(base)(jsondiff.ObjectAt(have, fieldStatus), jsondiff.ObjectAt(want, fieldStatus)))
	if out.Version == "" && !out.IsEmpty() {
		return Changes{}, errNoResourceVersion
	}
	return out, nil
}

// withoutEqualParts returns two items that are faster to compare than base and wanted. If the specs differ, it returns
// base and wanted themselves. Otherwise, it returns copies without the spec and without managedFields, which Diff
// ignores. If the metadata or the provider status is equal too, the copies contain only a small placeholder for it.
// Equal parts are frequent and can have a size of a megabyte.
func withoutEqualParts(base, wanted *lsv1alpha1.DeployItem) (left, right *lsv1alpha1.DeployItem) {
	if !reflect.DeepEqual(base.Spec, wanted.Spec) {
		return base, wanted
	}
	left, right = withoutSpec(base), withoutSpec(wanted)
	if reflect.DeepEqual(base.ObjectMeta, wanted.ObjectMeta) {
		same := metav1.ObjectMeta{ResourceVersion: base.ResourceVersion}
		left.ObjectMeta, right.ObjectMeta = same, same
	}
	if have := base.Status.ProviderStatus; have != nil && len(have.Raw) > 0 && reflect.DeepEqual(have, wanted.Status.ProviderStatus) {
		same := &runtime.RawExtension{Raw: []byte("{}")} // not nil, because both items have a provider status
		left.Status.ProviderStatus, right.Status.ProviderStatus = same, same
	}
	return left, right
}

func withoutSpec(item *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	out := &lsv1alpha1.DeployItem{TypeMeta: item.TypeMeta, ObjectMeta: item.ObjectMeta, Status: item.Status}
	out.ManagedFields = nil
	return out
}

// toBody returns the JSON body of an item, without explicit nulls inside objects.
func toBody(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return patching.Encode(u.Object)
	}
	return patching.Encode(obj)
}

// checkImmutable returns an error for differences in fields that Diff does not send.
func checkImmutable(base, wanted map[string]any) error {
	baseMeta, wantedMeta := jsondiff.ObjectAt(base, fieldMetadata), jsondiff.ObjectAt(wanted, fieldMetadata)
	for _, key := range identityFields {
		if !jsondiff.Equal(baseMeta[key], wantedMeta[key]) {
			return &jsondiff.FieldError{Path: jsondiff.PathOf(fieldMetadata, key), Reason: immutableReason}
		}
	}
	if found := jsondiff.Diff(withoutPatchedFields(base, wanted), withoutPatchedFields(wanted, base)); len(found) > 0 {
		return &jsondiff.FieldError{Path: found[0].Path.String(), Reason: immutableReason}
	}
	return nil
}

// withoutPatchedFields returns a copy of body without metadata and status. If the parameter `other` has no apiVersion
// or no kind, the copy does not contain that field either, because typed objects often lack both fields.
func withoutPatchedFields(body, other map[string]any) map[string]any {
	out := maps.Clone(body)
	delete(out, fieldMetadata)
	delete(out, fieldStatus)
	for _, key := range []string{"apiVersion", "kind"} {
		if other[key] == nil {
			delete(out, key)
		}
	}
	return out
}

func diffMetadata(base, wanted map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range metadataMaps {
		if change := jsondiff.MergePatch(jsondiff.ObjectAt(base, key), jsondiff.ObjectAt(wanted, key)); len(change) > 0 {
			out[key] = change
		}
	}
	for _, key := range metadataLists {
		have, _ := base[key].([]any)
		want, _ := wanted[key].([]any)
		switch {
		case jsondiff.Equal(have, want):
		case len(want) == 0:
			out[key] = nil
		default:
			out[key] = want
		}
	}
	return emptyToNil(out)
}

func emptyToNil(patch map[string]any) map[string]any {
	if len(patch) == 0 {
		return nil
	}
	return patch
}

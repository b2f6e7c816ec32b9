// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TransferFields transfers fields of an object from other managers to the manager of the owner, and returns the new
// managedFields. It transfers two kinds of entries:
//
//   - the Apply entries of earlier items with the same name. These are the entries of all managers whose names begin
//     with deployerkit-, except the managers of other current owners (see ListOwners).
//   - the Update entries of the managers in the list `updaters`. These are the field managers of a program that the
//     item replaces.
//
// TransferFields transfers neither entries for subresources nor status fields of Update entries. It returns false if
// there is nothing to transfer. It does not modify obj.
//
// TransferFields extends client-go's csaupgrade, which transfers only Update entries. TransferFields merges the
// transferred entries with the owner's own entry, if there is one. The merged entry has the API version of the owner's
// own entry or, if there is none, of the first transferred entry. It contains the fields of all entries, whatever their
// API versions are, so that the next apply also removes fields that were recorded under another version.
//
// Use TransferFields only if the object belongs to the item: IsSameItem returns true for the owner of the object, or
// the object carries the label of the program that the item replaces.
func TransferFields(obj metav1.Object, owner Owner, updaters ...string) ([]metav1.ManagedFieldsEntry, bool, error) {
	manager, alive := owner.FieldManager(), listOtherManagers(obj, owner)
	var own, others, kept []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		switch {
		case isOwn(entry, manager):
			own = append(own, entry)
		case isTransferred(entry, updaters) && !slices.Contains(alive, entry.Manager):
			others = append(others, entry)
		default:
			kept = append(kept, entry)
		}
	}
	if len(others) == 0 {
		return nil, false, nil
	}
	sources := slices.Concat(own, others)
	merged := *sources[0].DeepCopy()
	merged.Manager, merged.Operation = manager, metav1.ManagedFieldsOperationApply
	// The next apply would remove status fields, because no manifest contains them.
	fields, err := mergeFields(sources, fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	if err != nil {
		return nil, false, err
	}
	merged.FieldsV1 = fields
	return append([]metav1.ManagedFieldsEntry{merged}, kept...), true, nil
}

// listOtherManagers returns the managers of all other items that own the object.
func listOtherManagers(obj metav1.Object, owner Owner) []string {
	var out []string
	for _, other := range ListOwners(obj) {
		if !owner.IsSameItem(other) {
			out = append(out, other.FieldManager(), other.PatchFieldManager())
		}
	}
	return out
}

func isOwn(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

func isTransferred(entry metav1.ManagedFieldsEntry, updaters []string) bool {
	if entry.Subresource != "" {
		return false
	}
	if entry.Operation == metav1.ManagedFieldsOperationApply {
		return strings.HasPrefix(entry.Manager, managerPrefix)
	}
	return slices.Contains(updaters, entry.Manager)
}

// mergeFields combines the fields of all entries. It leaves out the fields in without, which may be nil, of Update
// entries.
func mergeFields(entries []metav1.ManagedFieldsEntry, without *fieldpath.Set) (*metav1.FieldsV1, error) {
	all := fieldpath.NewSet()
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read managed fields of %q: %w", entry.Manager, err)
		}
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && without != nil {
			set = set.RecursiveDifference(without)
		}
		all = all.Union(set)
	}
	raw, err := all.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("write managed fields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// NewTransferPatch returns the JSON patch that stores the result of TransferFields. The patch contains the object's
// resourceVersion. If the object has changed since it was read, the API server therefore answers with status code 409
// and changes nothing. NewTransferPatch returns nil if there is nothing to transfer.
func NewTransferPatch(obj metav1.Object, owner Owner, updaters ...string) ([]byte, error) {
	entries, changed, err := TransferFields(obj, owner, updaters...)
	if err != nil || !changed {
		return nil, err
	}
	return newPatch(obj, entries)
}

// NewMigrationPatch returns the JSON patch that replaces an API version in managedFields by another version. Use it if
// the API server does not know the earlier version any more, because it then rejects each write of the object. Like
// NewTransferPatch, the patch contains the object's resourceVersion. If a manager then has two entries for the same
// version, NewMigrationPatch merges them. It returns nil if managedFields does not contain the earlier version.
func NewMigrationPatch(obj metav1.Object, from, to string) ([]byte, error) {
	var entries []metav1.ManagedFieldsEntry
	changed := false
	for _, entry := range obj.GetManagedFields() {
		if entry.APIVersion == from {
			entry.APIVersion, changed = to, true
		}
		twin := slices.IndexFunc(entries, func(other metav1.ManagedFieldsEntry) bool { return isSameManager(other, entry) })
		if twin < 0 {
			entries = append(entries, entry)
			continue
		}
		fields, err := mergeFields([]metav1.ManagedFieldsEntry{entries[twin], entry}, nil)
		if err != nil {
			return nil, err
		}
		entries[twin].FieldsV1 = fields
	}
	if !changed {
		return nil, nil
	}
	return newPatch(obj, entries)
}

// isSameManager reports whether the API server would keep only one of two entries, because they have the same manager.
func isSameManager(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource && a.APIVersion == b.APIVersion
}

// newPatch returns the JSON patch that replaces managedFields, provided that the object has not changed.
func newPatch(obj metav1.Object, entries []metav1.ManagedFieldsEntry) ([]byte, error) {
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": obj.GetResourceVersion()},
	})
}

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

// TakeOver transfers fields of an object from other managers to the manager of the owner, and returns the new
// managedFields. It transfers two kinds of entries:
//
//   - the Apply entries of earlier items with the same name. These are the entries of all managers whose names begin
//     with deployerkit-, except the managers of other current owners (see OwnersOf).
//   - the Update entries of the managers in the list `updaters`. These are the field managers of a program that the
//     item replaces.
//
// TakeOver transfers neither entries for subresources nor status fields of Update entries. It returns false if
// there is nothing to transfer. It does not modify obj.
//
// TakeOver extends client-go's csaupgrade, which transfers only Update entries. TakeOver merges the transferred entries
// with the owner's own entry, if there is one. The merged entry has the API version of the owner's own entry or, if
// there is none, of the first transferred entry. It contains the fields of all entries, whatever their API versions are,
// so that the next apply also removes fields that were recorded under another version.
//
// Use TakeOver only if the object belongs to the item: SameItem returns true for the owner of the object, or the object
// carries the label of the program that the item replaces.
func TakeOver(obj metav1.Object, owner Owner, updaters ...string) ([]metav1.ManagedFieldsEntry, bool, error) {
	manager, alive := owner.Manager(), managersOfOthers(obj, owner)
	var own, others, kept []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		switch {
		case isOwn(entry, manager):
			own = append(own, entry)
		case isTakenOver(entry, updaters) && !slices.Contains(alive, entry.Manager):
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
	fields, err := union(sources, fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	if err != nil {
		return nil, false, err
	}
	merged.FieldsV1 = fields
	return append([]metav1.ManagedFieldsEntry{merged}, kept...), true, nil
}

// managersOfOthers returns the managers of all other items that own the object.
func managersOfOthers(obj metav1.Object, owner Owner) []string {
	var out []string
	for _, other := range OwnersOf(obj) {
		if !owner.SameItem(other) {
			out = append(out, other.Manager(), other.PatchManager())
		}
	}
	return out
}

func isOwn(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

func isTakenOver(entry metav1.ManagedFieldsEntry, updaters []string) bool {
	if entry.Subresource != "" {
		return false
	}
	if entry.Operation == metav1.ManagedFieldsOperationApply {
		return strings.HasPrefix(entry.Manager, managerPrefix)
	}
	return slices.Contains(updaters, entry.Manager)
}

// union combines the fields of all entries. It leaves out the given fields of Update entries. The argument `without` may
// be nil.
func union(entries []metav1.ManagedFieldsEntry, without *fieldpath.Set) (*metav1.FieldsV1, error) {
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

// TakeOverPatch returns the JSON patch that stores the result of TakeOver. The patch contains the object's
// resourceVersion. If the object has changed since it was read, the API server therefore answers with status code 409
// and changes nothing. TakeOverPatch returns nil if there is nothing to transfer.
func TakeOverPatch(obj metav1.Object, owner Owner, updaters ...string) ([]byte, error) {
	entries, changed, err := TakeOver(obj, owner, updaters...)
	if err != nil || !changed {
		return nil, err
	}
	return patchOf(obj, entries)
}

// MigratePatch returns the JSON patch that replaces an API version in managedFields by another version. Use it if the API
// server does not know the earlier version any more, because it then rejects each write of the object. Like
// TakeOverPatch, the patch contains the object's resourceVersion. If a manager then has two entries for the same version,
// MigratePatch merges them. It returns nil if managedFields does not contain the earlier version.
func MigratePatch(obj metav1.Object, from, to string) ([]byte, error) {
	var entries []metav1.ManagedFieldsEntry
	changed := false
	for _, entry := range obj.GetManagedFields() {
		if entry.APIVersion == from {
			entry.APIVersion, changed = to, true
		}
		twin := slices.IndexFunc(entries, func(other metav1.ManagedFieldsEntry) bool { return isTwin(other, entry) })
		if twin < 0 {
			entries = append(entries, entry)
			continue
		}
		fields, err := union([]metav1.ManagedFieldsEntry{entries[twin], entry}, nil)
		if err != nil {
			return nil, err
		}
		entries[twin].FieldsV1 = fields
	}
	if !changed {
		return nil, nil
	}
	return patchOf(obj, entries)
}

// isTwin reports whether the API server would keep only one of two entries, because they have the same manager.
func isTwin(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource && a.APIVersion == b.APIVersion
}

// patchOf returns the JSON patch that replaces managedFields, provided that the object has not changed.
func patchOf(obj metav1.Object, entries []metav1.ManagedFieldsEntry) ([]byte, error) {
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": obj.GetResourceVersion()},
	})
}

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

// TakeOver transfers to an owner what others own of an object, and returns the new managedFields. It transfers the
// Apply entries of former lives of the item (deployerkit-*, except those of other items that OwnersOf lists), and the
// Update entries of updaters, the field managers of a program that the item replaces. Entries for subresources, and a
// status, stay with their managers. TakeOver returns false if there is nothing to take over. It does not change obj.
//
// It does what client-go's csaupgrade does, but for Apply entries too. The manager's entry, or else the first one
// that is taken over, gets the fields of all others of the same API version. Those of another version are dropped.
//
// Use it only for objects that belong to the item, because of SameItem or because of the mark of the replaced
// program.
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
	fields, err := union(sources, merged.APIVersion)
	if err != nil {
		return nil, false, err
	}
	merged.FieldsV1 = fields
	return append([]metav1.ManagedFieldsEntry{merged}, kept...), true, nil
}

// managersOfOthers returns the managers of the other items that own the object, too.
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

// union leaves out the status in Update entries, because the new manager would remove it with the next apply.
func union(entries []metav1.ManagedFieldsEntry, version string) (*metav1.FieldsV1, error) {
	status := fieldpath.MakePathOrDie("status")
	all := fieldpath.NewSet()
	for _, entry := range entries {
		if entry.APIVersion != version || entry.FieldsV1 == nil {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read managed fields of %q: %w", entry.Manager, err)
		}
		if entry.Operation == metav1.ManagedFieldsOperationUpdate {
			set = set.RecursiveDifference(fieldpath.NewSet(status))
		}
		all = all.Union(set)
	}
	raw, err := all.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("write managed fields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// TakeOverPatch returns the JSON patch that stores the result of TakeOver. It carries the object's resourceVersion:
// if the object has changed since then, the server answers 409 and changes nothing. It returns nil if there is
// nothing to take over.
func TakeOverPatch(obj metav1.Object, owner Owner, updaters ...string) ([]byte, error) {
	entries, changed, err := TakeOver(obj, owner, updaters...)
	if err != nil || !changed {
		return nil, err
	}
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": obj.GetResourceVersion()},
	})
}

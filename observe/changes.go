// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// The changes by other writers are stored for each object. These constants limit their size.
const (
	maxChanges   = 3
	maxFields    = 8
	maxFieldSize = 120
)

// listOtherChanges returns the changes that other managers have made since the given manager last changed the object,
// newest first. It compares the times of the entries in managedFields: a write changes only the time of the writer's
// own entry, so older entries of other managers belong to earlier changes.
func listOtherChanges(obj metav1.Object, manager string) []Change {
	entries := obj.GetManagedFields()
	own, tracked := ownership.FindApplyEntry(entries, manager)
	var suspects []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		switch {
		case entry.Subresource == "status", entry.FieldsV1 == nil:
		case entry.Manager == ownership.FormatPatchManager(manager): // the item itself uses this manager, see Owner.PatchFieldManager
		case entry.Manager == manager && entry.Operation == own.Operation && entry.Subresource == "":
		case tracked && entry.Time != nil && entry.Time.Before(own.Time):
		default:
			suspects = append(suspects, entry)
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	slices.SortStableFunc(suspects, func(a, b metav1.ManagedFieldsEntry) int {
		// Entries without a time, such as those of the subresource scale, sort last.
		return ptr.Deref(b.Time, metav1.Time{}).Compare(ptr.Deref(a.Time, metav1.Time{}).Time)
	})
	return toChanges(suspects, getFields(own))
}

// toChanges returns the fields that each manager owns and the item does not own. It leaves out managers without such
// fields.
func toChanges(suspects []metav1.ManagedFieldsEntry, own *fieldpath.Set) []Change {
	var out []Change
	for _, entry := range suspects {
		fields := getFields(entry).Difference(own).Leaves()
		if fields.Empty() {
			continue
		}
		c := Change{Manager: entry.Manager, Subresource: entry.Subresource}
		for path := range fields.All() {
			if len(c.Fields) == maxFields {
				c.More++
				continue
			}
			c.Fields = append(c.Fields, shorten(strings.TrimPrefix(path.String(), ".")))
		}
		if out = append(out, c); len(out) == maxChanges {
			break
		}
	}
	return out
}

// getFields returns the fields of an entry, or an empty set if they cannot be decoded.
func getFields(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}

func shorten(path string) string {
	if len(path) <= maxFieldSize {
		return path
	}
	return strings.ToValidUTF8(path[:maxFieldSize], "") + "…"
}

// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/internal/deletion"
)

// A DriftReason describes how the state of an object differs from the expected state.
type DriftReason string

const (
	// DriftReasonChanged means that another writer changed or removed a field that the item owns.
	DriftReasonChanged DriftReason = "Changed"
	// DriftReasonWiped means that managedFields no longer contains an entry of the item, so the server does not know which
	// fields the item owns.
	DriftReasonWiped DriftReason = "Wiped"
	// DriftReasonDeleted means that the object was deleted or that its owner label was removed. A watch cannot distinguish
	// the two cases.
	DriftReasonDeleted DriftReason = "Gone"
	// DriftReasonDeleting means that the deletion of the object was requested, but finalizers still prevent it.
	DriftReasonDeleting DriftReason = "Deleting"
	// DriftReasonReplaced means that the object was deleted, and that another object with the same name exists now.
	DriftReasonReplaced DriftReason = "Replaced"
	// DriftReasonRelabelled means that the owner label names another item.
	DriftReasonRelabelled DriftReason = "Relabelled"
)

// Object identifies an object in the target.
type Object struct {
	Resource schema.GroupVersionResource
	types.NamespacedName
}

// String returns the object in the form "resource.group namespace/name" for use in messages.
func (o Object) String() string {
	return o.Resource.GroupResource().String() + " " + strings.TrimPrefix(o.NamespacedName.String(), "/")
}

// Drift reports that the state of an object differs from the state that its item expects. The same difference is
// reported only once.
type Drift struct {
	// Item is the UID of the item that expects the object.
	Item types.UID
	// Object is the object that drifted.
	Object Object
	// UID is the UID of the expected object. It is empty if the item expects no particular UID.
	UID types.UID
	// Reason is the kind of drift.
	Reason DriftReason
	// Changes lists at most three changes that may have caused the drift, newest first. It may be empty, because
	// managedFields does not show a manager that only removed fields.
	Changes []Change
	// Finalizers contains the finalizers that hold an object with the reason DriftReasonDeleting, at most eight.
	Finalizers []string
}

// Change lists fields that another manager wrote after the item's last write. It contains only fields that the item
// does not own, or no longer owns.
type Change struct {
	// Manager is the field manager, such as kubectl-edit.
	Manager string
	// Subresource is the subresource through which the manager wrote, such as scale. It is empty for the main resource.
	Subresource string
	// Fields contains at most eight paths in the order of the server, such as data.color or
	// spec.template.spec.containers[name="a"].image. Fields may include paths that the item never owned.
	Fields []string
	// More is the number of additional fields that Fields does not contain.
	More int
}

// String returns one line for use in events and conditions. It contains names of fields but never values.
func (d Drift) String() string {
	parts := make([]string, 0, len(d.Changes))
	for _, c := range d.Changes {
		parts = append(parts, c.String())
	}
	text := fmt.Sprintf("%s: %s%s", d.Object, strings.ToLower(string(d.Reason)), deletion.FormatFinalizers(d.Finalizers))
	if len(parts) > 0 {
		text += " by " + strings.Join(parts, "; ")
	}
	return text
}

// String returns the manager and the fields as text.
func (c Change) String() string {
	text := c.Manager
	if c.Subresource != "" {
		text += "/" + c.Subresource
	}
	if len(c.Fields) > 0 {
		text += " (" + strings.Join(c.Fields, ", ")
		if c.More > 0 {
			text += fmt.Sprintf(" and %d more", c.More)
		}
		text += ")"
	}
	return text
}

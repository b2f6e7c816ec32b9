// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// What describes what happened to an object that an item owns.
type What string

const (
	// Changed means that a field that the item owns was changed or removed.
	Changed What = "Changed"
	// Wiped means that the server no longer knows which fields the item owns.
	Wiped What = "Wiped"
	// Gone means that the object was deleted, or its owner label removed. A watch cannot distinguish the two.
	Gone What = "Gone"
	// Deleting means that the object was deleted but still has finalizers.
	Deleting What = "Deleting"
	// Replaced means that the object was deleted and another one of the same name exists.
	Replaced What = "Replaced"
	// Relabelled means that the owner label names another item.
	Relabelled What = "Relabelled"
)

// Object names an object in the target.
type Object struct {
	Resource schema.GroupVersionResource
	types.NamespacedName
}

// String returns the name for messages, in the form resource.group namespace/name.
func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	return o.Resource.GroupResource().String() + " " + name
}

// Event is one drift of one object, whose state differs from what the item expects and was not reported yet.
type Event struct {
	// Item is the UID of the item that expects the object.
	Item types.UID
	// Object is the object that drifted.
	Object Object
	// UID is the UID of the expected object. It is empty if that was not known.
	UID types.UID
	// What describes what happened.
	What What
	// By contains the possible authors of the change, newest first, at most three. It is empty if nothing is known,
	// because a manager that only removes fields leaves no trace.
	By []Change
}

// Change describes the fields that a manager wrote since the item's last write, and that the item does not own (any
// more).
type Change struct {
	// Manager is the field manager, such as kubectl-edit.
	Manager string
	// Subresource is the subresource through which the manager wrote, such as scale. It is usually empty.
	Subresource string
	// Fields are paths such as data.color or spec.template.spec.containers[name="a"].image, at most eight, in the
	// order of the server. They may include fields that the item never owned.
	Fields []string
	// More is the number of further fields.
	More int
}

// String returns one line for events and conditions. It contains names of fields, never values.
func (e Event) String() string {
	parts := make([]string, 0, len(e.By))
	for _, c := range e.By {
		parts = append(parts, c.String())
	}
	text := fmt.Sprintf("%s: %s", e.Object, strings.ToLower(string(e.What)))
	if len(parts) > 0 {
		text += " by " + strings.Join(parts, "; ")
	}
	return text
}

// String returns the manager and the fields.
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

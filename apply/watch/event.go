// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// What says what happened to an object that an item owns.
type What string

const (
	// Changed is when somebody changed or removed a field that the item owns.
	Changed What = "Changed"
	// Wiped is when the server no longer knows which fields the item owns.
	Wiped What = "Wiped"
	// Gone is when the object was deleted, or its owner label removed. Which of both, a watch cannot tell.
	Gone What = "Gone"
	// Deleting is when somebody deleted the object, and finalizers hold it.
	Deleting What = "Deleting"
	// Replaced is when the object was deleted and another one of the same name has its place.
	Replaced What = "Replaced"
	// Relabelled is when the owner label names another item.
	Relabelled What = "Relabelled"
)

// Object names an object in the target.
type Object struct {
	Resource schema.GroupVersionResource
	types.NamespacedName
}

// String is for messages: resource.group namespace/name.
func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	return o.Resource.GroupResource().String() + " " + name
}

// Event is one drift of one object: its state differs from what the item expects, and was not reported yet.
type Event struct {
	// Item is the UID of the item that expects the object.
	Item types.UID
	// Object is the object that drifted.
	Object Object
	// UID is the UID of the object as it was expected, empty if that was not known.
	UID types.UID
	// What happened.
	What What
	// By holds who may have done it, newest first, at most three. Empty if nothing is known: a manager that only removes
	// fields leaves no trace.
	By []Change
}

// Change is what a field manager wrote, that the item does not own (any more), since the item's last write.
type Change struct {
	// Manager is the field manager, such as kubectl-edit.
	Manager string
	// Subresource through which it wrote, such as scale. Mostly empty.
	Subresource string
	// Fields are paths such as data.color or spec.template.spec.containers[name="a"].image, at most eight, sorted by the
	// server. They may include fields that never were the item's.
	Fields []string
	// More is how many fields there are beyond Fields.
	More int
}

// String is one line for events and conditions. It holds names of fields, never values.
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

// String names the manager and the fields.
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

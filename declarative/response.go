// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"errors"
	"fmt"
	"time"

	"github.com/deployerkit/deployerkit/declarative/internal/objects"
)

// SyncResponse is the desired state of an item.
type SyncResponse struct {
	// Status is the item's current status, which the handler derives from the observed children. It may be any value
	// that marshals to a JSON object. The library stores it as the item's provider status. It adds apiVersion and kind
	// if they are missing, and sets observedGeneration. If Status is nil, the stored status does not change.
	Status any
	// Children are all desired children. Each child contains only the fields that the handler wants to set. An element
	// may be a typed object, *unstructured.Unstructured, a map, JSON (json.RawMessage or []byte), YAML (a string, which
	// may contain several documents), or a slice of these. The children are applied in this order within
	// each of the groups that [Options.Concurrency] describes.
	//
	// A child that consists only of apiVersion, kind, namespace and name is neither changed nor created; see
	// [Child.Keep]. There is one exception: the child is a typed object, and an earlier run has written it. In this
	// case, all other fields are removed from the child.
	Children []any
	// ResyncAfter is the time after which Sync is called again. Zero means that only changes and Options.Resync trigger
	// another call. A positive value of less than one second is raised to one second.
	ResyncAfter time.Duration
	// Wait explains in one line why the item is not ready yet, such as "1 of 3 pods is running". If it is not empty,
	// the children are applied, but the item stays in phase Progressing. Sync is called again when a child changes or
	// after ResyncAfter. If Wait is empty, the item succeeds when all children are applied.
	Wait string
	// Exports are the values that the item exports, by name. Landscaper's data exports refer to these names. Each value
	// must marshal to JSON. The values are written to the item's export Secret when the children are applied and Wait
	// is empty. They are written again when they change, and deleted with the item. If Exports is nil, nothing is
	// exported and an earlier export remains. An empty map deletes the earlier export.
	Exports map[string]any
}

// Builder builds a [SyncResponse] and collects errors, so that the handler needs to check for errors only once.
// [NewBuilder] returns a Builder.
type Builder struct {
	response SyncResponse
	errs     []error
}

// NewBuilder returns a Builder for a response with the given status, which may be nil. If the status does not marshal
// to a JSON object, [Builder.Build] returns an error.
func NewBuilder(status any) *Builder {
	b := &Builder{response: SyncResponse{Status: status}}
	if _, err := statusObject(status); err != nil {
		b.errs = append(b.errs, err)
	}
	return b
}

// Add adds elements to [SyncResponse].Children. [Builder.Build] returns an error if an element cannot be read as an
// object.
func (b *Builder) Add(children ...any) *Builder {
	for _, child := range children {
		if _, err := objects.Read(child); err != nil {
			b.errs = append(b.errs, fmt.Errorf("children[%d]: %w", len(b.response.Children), err))
		}
		b.response.Children = append(b.response.Children, child)
	}
	return b
}

// Try adds a child if err is nil. Otherwise it stores err for [Builder.Build]. The arguments may be the results of a
// function, as in b.Try(newPod(config)).
func (b *Builder) Try(child any, err error) *Builder {
	if err != nil {
		b.errs = append(b.errs, err)
		return b
	}
	return b.Add(child)
}

// ResyncAfter sets ResyncAfter.
func (b *Builder) ResyncAfter(after time.Duration) *Builder {
	b.response.ResyncAfter = after
	return b
}

// Wait sets the field Wait of the response. It formats the reason like fmt.Sprintf. An empty format means that the item
// is ready.
func (b *Builder) Wait(format string, args ...any) *Builder {
	b.response.Wait = fmt.Sprintf(format, args...)
	return b
}

// AddExport adds a value to Exports.
func (b *Builder) AddExport(name string, value any) *Builder {
	if b.response.Exports == nil {
		b.response.Exports = map[string]any{}
	}
	b.response.Exports[name] = value
	return b
}

// Build returns the response, or the joined errors of all earlier calls.
func (b *Builder) Build() (*SyncResponse, error) {
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	return &b.response, nil
}

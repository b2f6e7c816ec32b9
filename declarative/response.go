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
	// Status is the item's current status, as seen in the observed children. It is any value that marshals to a JSON
	// object, and becomes the item's provider status. The library adds apiVersion and kind if they are missing, and
	// sets observedGeneration. If Status is nil, an earlier status stays.
	Status any
	// Children are all children that the item wants, and of each only the fields that matter. They are typed objects or
	// slices of them, *unstructured.Unstructured, maps, JSON (json.RawMessage, []byte) or YAML (string, also with
	// several documents). They are applied in this order. A child with only a name is left as it is and is not created;
	// see [Child.Keep]. A typed one that was written before is emptied.
	Children []any
	// ResyncAfter asks for another call after this time. Zero means only after a change or Options.Resync.
	ResyncAfter time.Duration
	// Wait, if it is not empty, says in one line why the item is not ready yet, such as "1 of 3 pods is running". The
	// children are applied, the item stays in phase Progressing, and Sync is called again when a child changes or after
	// ResyncAfter. If Wait is empty, the job succeeds when all children are applied.
	Wait string
	// Exports are the values that the item exports by name, for Landscaper's data exports. Each is any value that
	// marshals to JSON. They are written to the item's export Secret once the children are applied and Wait is empty,
	// written again when they change, and deleted with the item. If Exports is nil, nothing is exported and an earlier
	// export stays. An empty map deletes the earlier export.
	Exports map[string]any
}

// Builder builds a [SyncResponse] and collects errors, so that the handler needs to check them only once. Start with
// [Respond].
type Builder struct {
	response SyncResponse
	errs     []error
}

// Respond starts a response with a status, which may be nil. [Builder.Response] returns an error if the status is no
// JSON object.
func Respond(status any) *Builder {
	b := &Builder{response: SyncResponse{Status: status}}
	if _, err := statusObject(status); err != nil {
		b.errs = append(b.errs, err)
	}
	return b
}

// Add adds children, each as in [SyncResponse].Children. [Builder.Response] returns an error if one cannot be read as
// an object.
func (b *Builder) Add(children ...any) *Builder {
	for _, child := range children {
		if _, err := objects.Read(child); err != nil {
			b.errs = append(b.errs, fmt.Errorf("children[%d]: %w", len(b.response.Children), err))
		}
		b.response.Children = append(b.response.Children, child)
	}
	return b
}

// Try adds the result of a function that may fail, as in b.Try(newPod(config)).
func (b *Builder) Try(child any, err error) *Builder {
	if err != nil {
		b.errs = append(b.errs, err)
		return b
	}
	return b.Add(child)
}

// Resync sets ResyncAfter.
func (b *Builder) Resync(after time.Duration) *Builder {
	b.response.ResyncAfter = after
	return b
}

// Wait sets Wait to a reason that is formatted as by fmt.Sprintf. An empty format means that the item is ready.
func (b *Builder) Wait(format string, args ...any) *Builder {
	b.response.Wait = fmt.Sprintf(format, args...)
	return b
}

// Export adds a value to Exports.
func (b *Builder) Export(name string, value any) *Builder {
	if b.response.Exports == nil {
		b.response.Exports = map[string]any{}
	}
	b.response.Exports[name] = value
	return b
}

// Response returns the response, or all errors at once.
func (b *Builder) Response() (*SyncResponse, error) {
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	return &b.response, nil
}

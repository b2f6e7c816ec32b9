// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"errors"
	"fmt"
	"time"

	"github.com/deployerkit/deployerkit/declarative/internal/objects"
)

// SyncResponse is what an item shall look like.
type SyncResponse struct {
	// Status is the item's current status, found by looking at the observed children. Anything that marshals to a JSON
	// object; it becomes the item's provider status. apiVersion and kind are filled in when missing,
	// observedGeneration is set by the library. nil: no status is set, an earlier one stays.
	Status any
	// Children are all children that the item shall have, and of each only the fields that matter: typed objects
	// (or slices of them), *unstructured.Unstructured, maps, JSON (json.RawMessage, []byte) or YAML
	// (string, with several documents if need be). They are applied in this order.
	// A child that says nothing but its name is left as it is, and is not created; see [Child.Keep]. A typed one that
	// was written before is emptied.
	Children []any
	// ResyncAfter asks for another call after this time; zero: only when something changes, or Options.Resync says so.
	ResyncAfter time.Duration
	// Wait, if not empty, tells in one line why the item is not ready yet ("1 of 3 pods is running"): the children
	// are applied, the item stays in phase Progressing, and Sync is called again when a child changes or
	// ResyncAfter is over. Empty: the job succeeds when all children are applied.
	Wait string
	// Exports are the values that the item exports by name, for Landscaper's data exports: anything that marshals to JSON. They
	// are written to the item's export Secret once the children are applied and Wait is empty, written again when they
	// change, and deleted with the item. If it is nil, nothing is exported and an earlier export stays; an empty map deletes
	// the earlier export.
	Exports map[string]any
}

// Builder makes a [SyncResponse] and collects the errors on the way, so that they need to be looked at only once.
// Start with [Respond].
type Builder struct {
	response SyncResponse
	errs     []error
}

// Respond starts a response with a status; nil: none. What is no JSON object is an error of [Builder.Response].
func Respond(status any) *Builder {
	b := &Builder{response: SyncResponse{Status: status}}
	if _, err := statusObject(status); err != nil {
		b.errs = append(b.errs, err)
	}
	return b
}

// Add adds children, each as in [SyncResponse].Children. What cannot be read as objects is an error of
// [Builder.Response].
func (b *Builder) Add(children ...any) *Builder {
	for _, child := range children {
		if _, err := objects.Read(child); err != nil {
			b.errs = append(b.errs, fmt.Errorf("children[%d]: %w", len(b.response.Children), err))
		}
		b.response.Children = append(b.response.Children, child)
	}
	return b
}

// Try adds what a function returned that may fail: b.Try(newPod(config)).
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

// Wait sets Wait: the item is not ready yet, for a reason that is formatted as by fmt.Sprintf. An empty format: it is ready.
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

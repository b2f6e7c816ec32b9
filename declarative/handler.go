// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// Handler says what shall be, for one deploy item at a time. It is called for different items at the same time and
// never twice at the same time for one item: state of its own needs a lock.
type Handler interface {
	// Sync gets a snapshot of one item and its observed children, and returns the item's status and all children
	// that it shall have. Children that it had and that are not returned are deleted. Sync should be a pure
	// function of the request: see the package comment on stable values.
	//
	// An error: no child is touched, the error is counted and told in the item's lastError, and Sync is called again
	// after a wait that grows from 100 ms to 10 min. An error with an unrecoverable Landscaper code (that of
	// [Config], for instance) ends the job at once. A response beside an error counts for its Status only; with a
	// nil response the provider status is not touched either.
	// A nil response without an error is a mistake and counts as an error.
	Sync(ctx context.Context, req *SyncRequest) (*SyncResponse, error)
}

// Finalizer is implemented by handlers that have something to clean up besides the children when an item is deleted.
// Without it the children are deleted at once.
type Finalizer interface {
	// Finalize is called instead of Sync when the item is to be deleted, as long as it answers with Retry, while
	// the children are still there. Then the children are deleted, and the item goes.
	// It may be called again after it said that it is done. Errors are as with Sync. A nil response means done.
	Finalize(ctx context.Context, req *SyncRequest) (*FinalizeResponse, error)
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, req *SyncRequest) (*SyncResponse, error)

// Sync calls the function.
func (f HandlerFunc) Sync(ctx context.Context, req *SyncRequest) (*SyncResponse, error) {
	return f(ctx, req)
}

// FinalizeResponse is the answer of a [Finalizer].
type FinalizeResponse struct {
	// Status is as in [SyncResponse]; nil leaves the one that is there.
	Status any
	// Retry of more than zero: not done yet, call again after this time, sooner when a child changes. Zero: done.
	Retry time.Duration
	// Reason tells in one line what is waited for, for the item's condition. Empty: a general text.
	Reason string
}

// SyncRequest is a snapshot of one item and of the children that belong to it. It is the handler's own: changing it
// changes nothing.
type SyncRequest struct {
	// Item is the deploy item. Its configuration is read with [Config].
	Item *lsv1alpha1.DeployItem
	// Raw is the item as JSON.
	Raw json.RawMessage
	// Target is the Target that the item names, without its content: no credentials. nil: only in tests.
	Target *lsv1alpha1.Target
	// Status is what the handler returned as status the last time, with apiVersion, kind and observedGeneration.
	// nil: nothing yet. Read it with [LastStatus].
	Status json.RawMessage
	// Children are the observed children of all configured kinds, ordered by kind, namespace and name.
	Children Children
}

// NewRequest makes a request of an item, its target and the observed children. The item is copied, the children are
// not: whoever hands them in must not change them any more. Most need this only in tests.
// Errors: the item's provider status is no JSON object.
func NewRequest(item *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, children ...*unstructured.Unstructured) (*SyncRequest, error) {
	status, err := decodeStatus(item.Status.ProviderStatus)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(item)
	if err != nil {
		return nil, fmt.Errorf("encode the item: %w", err)
	}
	req := &SyncRequest{Item: item.DeepCopy(), Raw: raw, Status: status.handler, Children: NewChildren(children...)}
	if target != nil {
		req.Target = target.DeepCopy()
		req.Target.Spec.Configuration, req.Target.Spec.SecretRef = nil, nil
	}
	return req, nil
}

// Name is [Name] for the request's item.
func (r *SyncRequest) Name(parts ...string) string { return Name(r.Item.Name, parts...) }

// Config decodes the item's configuration strictly into T: unknown and duplicate fields are errors. T needs no
// apiVersion and kind. Errors: a deployerlib.ConfigError with the path of the field, which ends the job at once.
func Config[T any](req *SyncRequest) (*T, error) { return deployerlib.DecodeConfig[T](req.Item) }

// LastStatus decodes the status that the handler returned the last time. It never returns nil: without a status, or
// after an error, T is empty. Unknown fields are ignored.
func LastStatus[T any](req *SyncRequest) (*T, error) {
	status := new(T)
	if len(req.Status) == 0 {
		return status, nil
	}
	if err := json.Unmarshal(req.Status, status); err != nil {
		return new(T), fmt.Errorf("decode the last status: %w", err)
	}
	return status, nil
}

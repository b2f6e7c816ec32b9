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

// Handler returns the desired state of one deploy item at a time. It is called for different items at the same time,
// but never twice at the same time for one item. State that it keeps needs a lock.
type Handler interface {
	// Sync gets a snapshot of one item and its observed children. It returns the item's status and all children that
	// the item wants. Children that the item had and that Sync does not return are deleted. Sync should be a pure
	// function of the request, as the package comment explains under "Stable values".
	//
	// After an error no child is changed, the error is counted and stored in the item's lastError, and Sync is called
	// again after a wait that grows from 100 ms to 10 min. An error with an unrecoverable Landscaper code, such as that
	// of [Config], ends the job at once. Of a response that comes with an error only the Status is used. If the
	// response is nil, the provider status does not change either. A nil response without an error is a mistake and
	// counts as an error.
	Sync(ctx context.Context, req *SyncRequest) (*SyncResponse, error)
}

// Finalizer is implemented by handlers that have to clean up more than the children when an item is deleted. For other
// handlers the children are deleted at once.
type Finalizer interface {
	// Finalize is called instead of Sync when the item is to be deleted, while the children still exist. It is called
	// again as long as it returns Retry. Then the children are deleted, and finally the item. It may be called again
	// after it is done. Errors have the same effect as with Sync. A nil response means done.
	Finalize(ctx context.Context, req *SyncRequest) (*FinalizeResponse, error)
}

// HandlerFunc is an adapter that makes a function a [Handler].
type HandlerFunc func(ctx context.Context, req *SyncRequest) (*SyncResponse, error)

// Sync calls the function.
func (f HandlerFunc) Sync(ctx context.Context, req *SyncRequest) (*SyncResponse, error) {
	return f(ctx, req)
}

// FinalizeResponse is the response of a [Finalizer].
type FinalizeResponse struct {
	// Status is the same as in [SyncResponse]. If it is nil, the stored status stays.
	Status any
	// Retry asks for another call after this time, or sooner when a child changes. Zero means that Finalize is done.
	Retry time.Duration
	// Reason says in one line what Finalize waits for. It is shown in the item's condition. If it is empty, a general
	// text is shown.
	Reason string
}

// SyncRequest is a snapshot of one item and of the children that belong to it. It belongs to the handler, and changes
// to it have no effect.
type SyncRequest struct {
	// Item is the deploy item. Read its configuration with [Config].
	Item *lsv1alpha1.DeployItem
	// Raw is the item as JSON.
	Raw json.RawMessage
	// Target is the Target that the item names, without its content, so without credentials. It is nil only in tests.
	Target *lsv1alpha1.Target
	// Status is the last status that the handler returned, with apiVersion, kind and observedGeneration. It is nil if
	// there is none yet. Read it with [LastStatus].
	Status json.RawMessage
	// Children are the observed children of all configured kinds, ordered by kind, namespace and name.
	Children Children
}

// NewRequest returns a request for an item, its target and the observed children. It copies the item but not the
// children, which must not be changed any more. Most handlers need it only in tests. It returns an error if the item's
// provider status is no JSON object.
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

// Config decodes the item's configuration strictly into T. Unknown and duplicate fields are errors. T needs no
// apiVersion and kind. The error is a deployerlib.ConfigError with the path of the field, which ends the job at once.
func Config[T any](req *SyncRequest) (*T, error) { return deployerlib.DecodeConfig[T](req.Item) }

// LastStatus decodes the last status that the handler returned. The result is never nil. Without a status, and after an
// error, it points to an empty T. Unknown fields are ignored.
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

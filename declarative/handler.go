// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Handler returns the desired state of one deploy item per call. Calls for different items run concurrently, but calls
// for one item never do. If a handler stores data between calls, it must protect the data with a lock.
type Handler interface {
	// Sync receives a snapshot of one item and its observed children. It returns the item's status and all desired
	// children. If an existing child is not among the desired children, it is deleted. Sync should be a pure function
	// of the request, as the package comment explains under "Stable values". If it may not be one, because it keeps
	// changing the children without a visible reason, the library calls it again with an earlier request, and only
	// compares the results.
	//
	// If Sync returns an error, no child is changed. The error is counted and stored in the item's lastError. Sync is
	// called again after a delay that grows from 100 ms to 10 min, unless the error has an unrecoverable Landscaper
	// code, such as an error of [Config]. In that case, the item's Landscaper job ends at once. If Sync returns a
	// response and an error, only the Status of the response is used. A nil response with a nil error counts as an
	// error.
	Sync(ctx context.Context, req *SyncRequest) (*SyncResponse, error)
}

// Finalizer is implemented by handlers that have to clean up more than their children when an item is deleted. If the
// handler is not a Finalizer, the children are deleted at once.
type Finalizer interface {
	// Finalize is called instead of Sync when the item is being deleted, while the children still exist. Finalize is
	// done when it returns a nil response or a response whose Retry is zero. Then the children are deleted, and finally
	// the item. Until Finalize is done, it is called repeatedly. It may also be called again afterwards. An error has
	// the same effect as an error of Sync.
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
	// Status is the item's current status, as in [SyncResponse]. If it is nil, the stored status does not change.
	Status any
	// Retry is the time after which Finalize is called again. If a child changes, Finalize is called earlier. Zero
	// means that Finalize is done. A positive value of less than one second is raised to one second.
	Retry time.Duration
	// Reason explains in one line what Finalize is waiting for. It is shown in a condition of the item. If it is empty,
	// the condition contains a general text.
	Reason string
}

// SyncRequest is a snapshot of one item and of its children. The handler may modify it without any effect on the item
// or the children.
type SyncRequest struct {
	// Item is the deploy item. Read its configuration with [Config].
	Item *lsv1alpha1.DeployItem
	// Raw is the item as JSON.
	Raw json.RawMessage
	// Target is the Target to which the item refers, without its configuration and its secretRef. It therefore contains
	// no credentials. It is nil in [Plan] if the item names no Target, and if package declarativetest calls the handler.
	Target *lsv1alpha1.Target
	// Status is the last status that the handler returned, with apiVersion, kind and observedGeneration. It is nil if
	// there is none yet. Read it with [LastStatus].
	Status json.RawMessage
	// Children are the observed children of all configured kinds, ordered by kind, namespace and name.
	Children Children
	// Finished lists the children that have finished their work and no longer exist, in the order of Children. An example
	// is a Job with ttlSecondsAfterFinished. Such a child is not created again as long as the handler returns it
	// unchanged. A child that is known to have failed is not in the list.
	Finished []apply.Ref
}

// IsFinished reports whether Finished contains a child with the given kind and name. Both have the same format as for
// [Children.Find].
func (r *SyncRequest) IsFinished(kind, name string) bool {
	return slices.ContainsFunc(r.Finished, func(ref apply.Ref) bool {
		one := &unstructured.Unstructured{}
		one.SetAPIVersion(ref.APIVersion)
		one.SetKind(ref.Kind)
		one.SetNamespace(ref.Namespace)
		one.SetName(ref.Name)
		_, found := NewChildren(one).Find(kind, name)
		return found
	})
}

// NewRequest returns a request for an item, its target and the observed children. NewRequest copies the item but not
// the children, so the children must not be changed afterwards. NewRequest returns an error if the item's provider
// status is not a JSON object. Most handlers need NewRequest only in tests.
func NewRequest(item *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, children ...*unstructured.Unstructured) (*SyncRequest, error) {
	status, err := decodeStatus(item.Status.ProviderStatus)
	if err != nil {
		return nil, err
	}
	return newRequest(item, target, status, children)
}

// newRequest is like NewRequest, but gets the decoded provider status as an argument.
func newRequest(item *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, status *providerStatus, children []*unstructured.Unstructured) (*SyncRequest, error) {
	raw, err := json.Marshal(item)
	if err != nil {
		return nil, fmt.Errorf("encode the item: %w", err)
	}
	last, err := status.last()
	if err != nil {
		return nil, fmt.Errorf("encode the last status: %w", err)
	}
	req := &SyncRequest{Item: item.DeepCopy(), Raw: raw, Status: last, Children: NewChildren(children...)}
	if target != nil {
		req.Target = target.DeepCopy()
		req.Target.Spec.Configuration, req.Target.Spec.SecretRef = nil, nil
	}
	return req, nil
}

// clone returns a copy that the handler may modify. The copy shares the observed children, which no handler can modify.
func (r *SyncRequest) clone() *SyncRequest {
	return &SyncRequest{
		Item: r.Item.DeepCopy(), Raw: slices.Clone(r.Raw), Target: r.Target.DeepCopy(), Status: slices.Clone(r.Status),
		Children: slices.Clone(r.Children), Finished: slices.Clone(r.Finished),
	}
}

// Name returns a name for a child of the request's item. It calls the function [Name] with the item's name.
func (r *SyncRequest) Name(parts ...string) string { return Name(r.Item.Name, parts...) }

// Config decodes the item's configuration into a T. Unknown and duplicate fields are errors. T need not have fields for
// apiVersion and kind. The error is one of deployerlib.NewConfigError with the path of the invalid field. If the
// handler returns it, the item's Landscaper job ends at once.
func Config[T any](req *SyncRequest) (*T, error) { return deployerlib.DecodeConfig[T](req.Item) }

// LastStatus decodes the status that the handler returned last. It ignores unknown fields. If there is no status or
// decoding fails, the result points to an empty T. The result is never nil.
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

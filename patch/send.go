// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Order says which of two patches is sent first.
type Order int

const (
	// MetadataFirst is the default: what protects (a finalizer) is stored before what is told.
	MetadataFirst Order = iota
	// StatusFirst is for metadata that may only go once the status is safe: the finalizer after the
	// last status, an operation annotation after the start of the run.
	StatusFirst
)

// endpoint is one of the two places that take a patch.
type endpoint struct {
	name string
	part func(*Changes) *[]byte
	send func(ctx context.Context, c client.Client, obj client.Object, p client.Patch) error
}

var (
	mainEndpoint = endpoint{
		name: fieldMetadata,
		part: func(c *Changes) *[]byte { return &c.Metadata },
		send: func(ctx context.Context, c client.Client, obj client.Object, p client.Patch) error {
			return c.Patch(ctx, obj, p)
		},
	}
	statusEndpoint = endpoint{
		name: fieldStatus,
		part: func(c *Changes) *[]byte { return &c.Status },
		send: func(ctx context.Context, c client.Client, obj client.Object, p client.Patch) error {
			return c.Status().Patch(ctx, obj, p)
		},
	}
)

func (o Order) endpoints() []endpoint {
	if o == StatusFirst {
		return []endpoint{statusEndpoint, mainEndpoint}
	}
	return []endpoint{mainEndpoint, statusEndpoint}
}

// Send sends the changes in at most two calls; without changes it does nothing. The second call
// carries the resourceVersion that the first one returned. obj says which object it is and what Go
// type the responses have; each response replaces all of it, and a call that fails leaves it alone.
// It returns what is still to be sent: empty after a success, otherwise everything from the failed
// call on, with the resourceVersion of a first call that succeeded.
// Errors wrap the API server's answer, so apierrors.IsConflict, IsNotFound and IsInvalid work; a
// *SizeError says that the object is too large, see Permanent. When the first call let the last
// finalizer of a terminating object go, the second one may find nothing any more: that is no error.
func Send(ctx context.Context, c client.Client, obj client.Object, changes Changes, order Order) (Changes, error) {
	left, sent := changes, false
	for _, to := range order.endpoints() {
		data := *to.part(&left)
		if data == nil {
			continue
		}
		err := sendOne(ctx, c, obj, to, data)
		if sent && apierrors.IsNotFound(err) && isReleased(obj) {
			return Changes{}, nil
		}
		if err != nil {
			return left, err
		}
		sent = true
		*to.part(&left) = nil
		if left, err = left.at(obj.GetResourceVersion()); err != nil {
			return left, err
		}
	}
	return left, nil
}

// Fence asks the API server whether obj is the stored version, with an empty patch of the main
// resource that holds only the resourceVersion: 409 (apierrors.IsConflict) if it is not. Nothing is
// written, and nobody gets an event. obj is replaced by the response.
// Errors: as from Send, and one when obj has no resourceVersion.
func Fence(ctx context.Context, c client.Client, obj client.Object) error {
	if obj.GetResourceVersion() == "" {
		return errNoResourceVersion
	}
	data, err := json.Marshal(lockedBy(obj.GetResourceVersion()))
	if err != nil {
		return fmt.Errorf("encode fence: %w", err)
	}
	return sendOne(ctx, c, obj, mainEndpoint, data)
}

// sendOne sends into an empty object: decoding into a filled one would keep the map entries and
// fields that the response no longer has.
func sendOne(ctx context.Context, c client.Client, obj client.Object, to endpoint, data []byte) error {
	response, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(obj).Elem()))
	if !ok {
		return fmt.Errorf("patch %s of %s: %T is no object", to.name, client.ObjectKeyFromObject(obj), obj)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	response.GetObjectKind().SetGroupVersionKind(gvk)
	response.SetNamespace(obj.GetNamespace())
	response.SetName(obj.GetName())
	if err := to.send(ctx, c, response, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("patch %s of %T %s: %w", to.name, obj, client.ObjectKeyFromObject(obj), explain(err))
	}
	response.GetObjectKind().SetGroupVersionKind(gvk)
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(response).Elem())
	return nil
}

// isReleased tells that nothing holds a terminating object any more.
func isReleased(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0
}

// SPDX-License-Identifier: Apache-2.0

// Package itempatch compares two versions of a deploy item and sends the difference. It ensures that the changed item
// is valid under the schema of deploy items. It uses package patching to merge, encode and send patches.
package itempatch

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/internal/patching"
)

// errNoResourceVersion is returned if there are changes but the base object has no resourceVersion. A patch without a
// resourceVersion would overwrite newer changes.
var errNoResourceVersion = errors.New("the base object has no resourceVersion")

// Changes is the difference between two versions of one item, split by endpoint. Both patches are merge patches. A
// patch is nil if there is nothing to send to its endpoint.
type Changes struct {
	// Metadata is the patch of the main resource.
	Metadata map[string]any
	// Status is the patch of the status subresource.
	Status map[string]any
	// Version is the resourceVersion on which the changes are based.
	Version string
}

// IsEmpty reports whether there is nothing to send.
func (c Changes) IsEmpty() bool { return c.Metadata == nil && c.Status == nil }

// ApplyTo applies the changes to a copy of the item and returns the copy. The copy has the same Go type and
// resourceVersion as the item. On does not change its argument and sends no request.
func (c Changes) ApplyTo(item client.Object) (client.Object, error) {
	body, err := toBody(item)
	if err != nil {
		return nil, err
	}
	return patching.ToObject(item, jsondiff.ApplyMergePatch(jsondiff.ApplyMergePatch(body, c.getMetadataPatch()), c.getStatusPatch()))
}

// getMetadataPatch and status return the merge patches without the resourceVersion.
func (c Changes) getMetadataPatch() map[string]any { return newFieldPatch(fieldMetadata, c.Metadata) }
func (c Changes) getStatusPatch() map[string]any   { return newFieldPatch(fieldStatus, c.Status) }

func newFieldPatch(key string, change map[string]any) map[string]any {
	if change == nil {
		return nil
	}
	return map[string]any{key: change}
}

// Send sends the changes in at most two calls, the status first. The second call uses the resourceVersion in the
// response to the first call. The parameter `item` identifies the object and determines the Go type of the responses.
// Each response is stored in item; a failed call does not change item.
//
// Send returns the changes that are not stored. After a success, there are none. If a call fails, Send returns the
// changes of that call and of any call that was not made. Errors wrap the error of the API server.
func Send(ctx context.Context, c client.Client, item client.Object, changes Changes) (Changes, error) {
	left := changes
	if left.Status != nil {
		if err := patching.Write(ctx, c, item, fieldStatus, left.Version, left.getStatusPatch()); err != nil {
			return left, err
		}
		left.Status, left.Version = nil, item.GetResourceVersion()
	}
	if left.Metadata != nil {
		if err := patching.Write(ctx, c, item, "", left.Version, left.getMetadataPatch()); err != nil {
			return left, err
		}
		left.Metadata, left.Version = nil, item.GetResourceVersion()
	}
	return left, nil
}

// CheckStored checks that the API server still stores the given version of the item. To do so, it sends a write that
// changes nothing and causes no watch event. If the API server stores a newer version, the error is a conflict
// (apierrors.IsConflict). The response is stored in the parameter `item`.
func CheckStored(ctx context.Context, c client.Client, item client.Object) error {
	if item.GetResourceVersion() == "" {
		return errNoResourceVersion
	}
	return patching.Write(ctx, c, item, "", item.GetResourceVersion(), nil)
}

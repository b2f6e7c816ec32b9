// SPDX-License-Identifier: Apache-2.0

// Package itempatch compares two versions of a deploy item and sends the difference. It knows the requirements of the
// schema of deploy items. Package patching merges, encodes and sends.
package itempatch

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/patching"
)

// errNoResourceVersion is returned because a patch without a version would overwrite newer changes.
var errNoResourceVersion = errors.New("the base object has no resourceVersion")

// Changes is the difference between two versions of one item, split by endpoint. Both patches are merge patches. They
// are nil if there is nothing to send.
type Changes struct {
	// Metadata goes to the main resource.
	Metadata map[string]any
	// Status goes to the status subresource.
	Status map[string]any
	// Version is the resourceVersion on which the changes are based.
	Version string
}

// Empty reports whether there is nothing to send.
func (c Changes) Empty() bool { return c.Metadata == nil && c.Status == nil }

// On returns a copy of item with the changes applied, of the same Go type and version. It does not change item and
// sends nothing.
func (c Changes) On(item client.Object) (client.Object, error) {
	body, err := bodyOf(item)
	if err != nil {
		return nil, err
	}
	return patching.ObjectOf(item, patching.ApplyMerge(patching.ApplyMerge(body, c.metadata()), c.status()))
}

// metadata and status return the merge patches without the resourceVersion.
func (c Changes) metadata() map[string]any { return patchOf(fieldMetadata, c.Metadata) }
func (c Changes) status() map[string]any   { return patchOf(fieldStatus, c.Status) }

func patchOf(key string, change map[string]any) map[string]any {
	if change == nil {
		return nil
	}
	return map[string]any{key: change}
}

// Send sends the changes in at most two calls, the status first. The second call uses the resourceVersion that the
// first one returned. item identifies the item and determines the Go type of the responses. Each response replaces it;
// a failed call does not change it.
//
// Send returns what is left to be sent: nothing after a success, and otherwise everything from the failed call on.
// Errors wrap the error of the API server.
func Send(ctx context.Context, c client.Client, item client.Object, changes Changes) (Changes, error) {
	left := changes
	if left.Status != nil {
		if err := patching.Write(ctx, c, item, fieldStatus, left.Version, left.status()); err != nil {
			return left, err
		}
		left.Status, left.Version = nil, item.GetResourceVersion()
	}
	if left.Metadata != nil {
		if err := patching.Write(ctx, c, item, "", left.Version, left.metadata()); err != nil {
			return left, err
		}
		left.Metadata, left.Version = nil, item.GetResourceVersion()
	}
	return left, nil
}

// Fence checks with a write that changes nothing whether item is the stored version. If it is not, the error is a
// conflict (apierrors.IsConflict). The write causes no watch event. The response replaces item.
func Fence(ctx context.Context, c client.Client, item client.Object) error {
	if item.GetResourceVersion() == "" {
		return errNoResourceVersion
	}
	return patching.Write(ctx, c, item, "", item.GetResourceVersion(), nil)
}

// SPDX-License-Identifier: Apache-2.0

// Package itempatch compares two versions of a deploy item and sends the difference. It knows what the schema of deploy items
// demands. Merging, encoding and sending are in package patching.
package itempatch

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/patching"
)

// errNoResourceVersion means that a patch would overwrite whatever is stored by now.
var errNoResourceVersion = errors.New("the base object has no resourceVersion")

// Changes is the difference of two versions of one item, split by the endpoint that takes it. Both members are merge patches, nil
// if there is nothing to send.
type Changes struct {
	// Metadata goes to the main resource.
	Metadata map[string]any
	// Status goes to the status subresource.
	Status map[string]any
	// Version is the resourceVersion that the changes are bound to.
	Version string
}

// Empty reports whether there is nothing to send.
func (c Changes) Empty() bool { return c.Metadata == nil && c.Status == nil }

// On returns a copy of item, of the same Go type and version, with the changes made. item is not changed and nothing is sent.
func (c Changes) On(item client.Object) (client.Object, error) {
	body, err := bodyOf(item)
	if err != nil {
		return nil, err
	}
	return patching.ObjectOf(item, patching.ApplyMerge(patching.ApplyMerge(body, c.metadata()), c.status()))
}

// metadata and status are the two merge patches without the lock.
func (c Changes) metadata() map[string]any { return patchOf(fieldMetadata, c.Metadata) }
func (c Changes) status() map[string]any   { return patchOf(fieldStatus, c.Status) }

func patchOf(key string, change map[string]any) map[string]any {
	if change == nil {
		return nil
	}
	return map[string]any{key: change}
}

// Send sends the changes in at most two calls, the status first. The second call carries the resourceVersion that the first one
// returned. item says which item it is and what Go type the responses have. Each response replaces all of it, and a call that fails
// leaves it alone.
//
// It returns what is still to be sent: nothing after a success, otherwise everything from the failed call on. Errors wrap the answer
// of the API server.
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

// Fence asks the API server whether item is the stored version, with a write that changes nothing: 409 (apierrors.IsConflict) if it is
// not. No watcher gets an event. The response replaces item.
func Fence(ctx context.Context, c client.Client, item client.Object) error {
	if item.GetResourceVersion() == "" {
		return errNoResourceVersion
	}
	return patching.Write(ctx, c, item, "", item.GetResourceVersion(), nil)
}

// SPDX-License-Identifier: Apache-2.0

// Package patch changes an object with as few API calls as possible and preserves the changes of other clients.
//
// A Patch collects changes of an object: merge changes for simple fields, and functions for changes that depend on the
// stored object. Apply sends both together, in at most two calls, and describes the calls in its result:
//
//	p := &patch.Patch{}
//	p.Labels().Set("example.org/team", "blue")
//	p.Append(addFinalizer)
//	result, err := p.Apply(ctx, c, obj)
//
// Apply works with every object, typed or unstructured, with or without a status subresource. The stored result is the
// same for all of them. Patches with functions use optimistic locking: after a conflict, the functions run again on the
// newer body. To set the field manager, wrap the client with client.WithFieldOwner.
//
// If the client has the permission to update objects of a kind but not the permission to patch them, Apply reads the
// object and sends an update.
//
// # What a merge change cannot do
//
// A merge change replaces a list as a whole; use a function to change single items of the list. A merge change cannot
// store an explicit null inside an object, because the API server treats it like an absent key; use a function to store
// a null.
package patch

// SPDX-License-Identifier: Apache-2.0

// Package patch changes an object with as few API calls as possible and keeps the changes of other writers.
//
// A Patch collects changes of an object: merge changes for simple fields, and functions for changes that depend on the
// stored object. Apply sends both together, in at most two calls, and returns what it did:
//
//	p := &patch.Patch{}
//	p.Labels().Set("example.org/team", "blue")
//	p.Append(addFinalizer)
//	result, err := p.Apply(ctx, c, obj)
//
// It works with every object, typed or unstructured, with or without a status subresource, and has the same result for
// each form. Patches with functions use optimistic locking: after a conflict the functions run again on the newer body.
// To set the field manager, wrap the client with client.WithFieldOwner.
//
// If patches of a kind are forbidden and updates are not, Apply reads the object and updates it instead.
//
// # What a merge change cannot do
//
// A merge change replaces a list as a whole; use a function to change its items. In a merge change, an explicit null
// inside an object is the same as an absent key; use a function to store a null.
package patch

// SPDX-License-Identifier: Apache-2.0

// Package patch changes an object in the fewest API calls without losing what others wrote.
//
// A Patch collects changes of an object: merge changes for simple fields, functions for what depends on what is stored. Apply sends
// both together, in at most two calls, and returns what it did:
//
//	p := &patch.Patch{}
//	p.Labels().Set("example.org/team", "blue")
//	p.Append(addFinalizer)
//	result, err := p.Apply(ctx, c, obj)
//
// It works on every object, typed or unstructured, with a status subresource or without, and gives the same result for each form.
// With functions it locks: after a conflict they run again on the newer body. Wrap the client with client.WithFieldOwner to name the
// field manager.
//
// Where patches of a kind are forbidden and updates are not, Apply reads the object and updates it instead.
//
// # What a merge change cannot do
//
// It replaces lists as a whole. A function changes their items. An explicit null inside an object is the same as an absent key. A
// function can store one.
package patch

// SPDX-License-Identifier: Apache-2.0

// Package ownership says which objects in a target belong to which deploy item, and whether somebody changed
// what the item owns. It is pure: no client, no clock.
//
// # Whose object is it?
//
// An Owner is a deploy item. Stamp writes it onto an object, OwnerOf reads it:
//
//	metadata:
//	  labels:
//	    deployerkit.dev/item: 4f1e…                 # the item's UID; watches select by it
//	  annotations:
//	    deployerkit.dev/landscape: 9c02…            # UID of the Landscaper cluster's kube-system namespace
//	    deployerkit.dev/item-namespace: shop
//	    deployerkit.dev/item-name: web
//
// Names are annotations because they may be longer than the 63 characters of a label value. An object with
// another UID but the same landscape, namespace and name (SameItem) belongs to a former life of the item, which
// was restored from a backup or created again: it is taken over, not refused.
//
// An object that several items own names one of them like that. Each of the others has an annotation of its own
// (StampShared), deployerkit.dev/owner- with its UID. OwnersOf reads them all.
//
// Keys with the prefix deployerkit.dev/ are ours alone: Reserved finds them in what users hand in.
//
// # Was it changed?
//
// Each item applies its objects under a field manager of its own (Manager), so that the server keeps an entry in
// managedFields with exactly the fields that the item owns. KeyOf condenses that entry. The key of the answer to
// our last write is remembered; a different key later on means that somebody changed or removed a field that the
// item owns. Fields of others, status and writes without a change leave it alone. What the key cannot see is
// listed in docs/drift.md.
//
// # Taking over
//
// Server-side apply removes a field that is no longer applied only if the same manager applied it before.
// TakeOverPatch hands the fields of a former manager to ours, so that they can go later on.
package ownership

// SPDX-License-Identifier: Apache-2.0

// Package ownership determines which objects of a target belong to which deploy item, and whether another writer
// changed what the item owns. It is pure: it has no client and no clock.
//
// # Ownership
//
// An Owner is a deploy item. Stamp writes it to an object, and OwnerOf reads it:
//
//	metadata:
//	  labels:
//	    deployerkit.dev/item: 4f1e…                 # the item's UID; watches select by it
//	  annotations:
//	    deployerkit.dev/landscape: 9c02…            # UID of the Landscaper cluster's kube-system namespace
//	    deployerkit.dev/item-namespace: shop
//	    deployerkit.dev/item-name: web
//
// Names are annotations because they may be longer than the 63 characters of a label value. An object with another
// UID but the same landscape, namespace and name (SameItem) belongs to an earlier life of the item, which was
// restored from a backup or created again. Such an object is taken over, not refused.
//
// An object that several items own names one of them in this way. Each of the others has a separate annotation
// (StampShared), deployerkit.dev/owner- followed by its UID. OwnersOf returns all of them.
//
// Keys with the prefix deployerkit.dev/ are reserved for this library. Reserved finds them in manifests and patches
// of users.
//
// # Changes
//
// Each item applies its objects under its own field manager (Manager), so the server keeps an entry in managedFields
// with exactly the fields that the item owns. KeyOf computes a hash of that entry. The key of the answer to the last
// write is stored; a different key later means that another writer changed or removed a field that the item owns.
// Fields of other managers, the status and writes that change nothing do not affect the key. docs/drift.md lists what
// the key cannot show.
//
// # Taking objects over
//
// Server-side apply removes a field that is no longer applied only if the same manager applied it before.
// TakeOverPatch transfers the fields of a former manager to the item's manager, so that they can be removed later.
package ownership

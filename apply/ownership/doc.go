// SPDX-License-Identifier: Apache-2.0

// Package ownership determines which objects in a target belong to which deploy item, and whether another writer
// changed fields that the item owns. The package is pure: it uses neither a client nor a clock.
//
// # Ownership
//
// An Owner identifies a deploy item (in short: an item). Mark writes the owner to an object, and GetOwner reads it from
// there:
//
//	metadata:
//	  labels:
//	    deployerkit.dev/item: 4f1e…                 # the item's UID; watches select by it
//	  annotations:
//	    deployerkit.dev/landscape: 9c02…            # UID of the Landscaper cluster's kube-system namespace
//	    deployerkit.dev/item-namespace: shop
//	    deployerkit.dev/item-name: web
//
// Namespace and name are annotations because they may be longer than the 63 characters of a label value. If the label
// of an object contains a different UID, but landscape, namespace and name are the same (see IsSameItem), the object
// belongs to an earlier item of the same name. The earlier item was deleted and created again, or restored from a
// backup. The current item takes over such an object instead of refusing it.
//
// If several items own an object, its label and these annotations name only one of them. Each of the other items adds a
// separate annotation (see MarkShared). The key of that annotation is deployerkit.dev/owner- followed by the UID of
// the item. ListOwners returns all owners.
//
// Keys with the prefix deployerkit.dev/ are reserved for this library (see IsReserved). The users' manifests and
// patches must not contain such keys.
//
// # Changes
//
// Each item applies its objects under its own field manager (see Owner.FieldManager). The server therefore keeps one
// entry in managedFields that lists exactly the fields that the item owns. ComputeFingerprint computes a hash of that
// entry. After each write, the item stores the fingerprint of the object that the API server returns. If the object has
// a different fingerprint later, another writer has changed or removed a field that the item owns. Changes to fields of
// other managers, changes to the status and writes without effect do not change the fingerprint. docs/drift.md lists
// the changes that the fingerprint cannot show.
//
// # Taking objects over
//
// If a manifest no longer contains a field, server-side apply removes the field only if the same manager applied it
// before. NewTransferPatch transfers the fields of an earlier manager to the item's manager, so that a later apply can
// remove them.
package ownership

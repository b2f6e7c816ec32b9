// SPDX-License-Identifier: Apache-2.0

package object

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Record extends an Entry of the inventory by information that is needed only during a call. Only one goroutine works
// on a Record at a time.
type Record struct {
	Entry

	// Gone means that the inventory does not contain the object, or no longer contains it.
	Gone bool
	// IsNew means that the object is new in the inventory, so that the item has not written it yet.
	IsNew bool
	// Claimed means that a manifest of this call describes the object.
	Claimed bool
	// AnyOwner means that the object is deleted regardless of its owner. Such a Record is never part of an inventory.
	AnyOwner bool
	// Changed means that the last write changed the object.
	Changed bool
	// Resource is empty if it is not known.
	Resource schema.GroupVersionResource
	// Version is the resource version in the answer to the last write.
	Version string
}

// OwnerState describes whether the deploy item to which an object belongs still exists.
type OwnerState string

// These constants are the states of an owner. Package apply documents them.
const (
	OwnerUnknown  OwnerState = ""
	OwnerExists   OwnerState = "exists"
	OwnerDeleting OwnerState = "deleting"
	OwnerGone     OwnerState = "gone"
)

// Event describes a notable change of an object, or the reason why an object was not changed.
type Event struct {
	Ref Ref
	// Reason is one of the Reason constants.
	Reason string
	// Message is one line without secret values.
	Message string
}

// These constants are the reasons of events. Package apply documents them.
const (
	ReasonAdopted   = "Adopted"
	ReasonMigrated  = "Migrated"
	ReasonTakenOver = "TakenOver"
	ReasonShared    = "Shared"
	ReasonReleased  = "Released"
	ReasonLeftAlone = "LeftAlone"
	ReasonMayRemain = "MayRemain"
)

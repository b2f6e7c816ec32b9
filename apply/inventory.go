// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/json"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/internal/object"
)

// Inventory lists the objects of one item. The engine adds an object to the inventory before it writes the object. The
// inventory is therefore a superset of the existing objects. The engine removes an object from the inventory when the
// object is known to be gone, or when it stays in the cluster on purpose. The caller stores the Inventory as compact
// JSON and passes it to the next call. The engine does not modify an Inventory but returns a new one.
type Inventory struct {
	Entries []Entry `json:"entries,omitempty"`
	// Cluster identifies the cluster that contains the objects. It is nil if the cluster is not known. The engine does
	// not use this field.
	Cluster *ClusterID `json:"cluster,omitempty"`
	// Former contains the inventories of clusters that the item no longer uses but that still contain some of its
	// objects. The engine does not use them, but they count towards Options.MaxInventory.
	Former []Inventory `json:"former,omitempty"`
	// Empty means that the item has no objects. If an inventory contains no objects and Empty is false, the inventory
	// may have been lost. The engine does not use Empty.
	Empty bool `json:"empty,omitempty"`
}

// ClusterID identifies the cluster of an Inventory.
type ClusterID struct {
	// UID is the UID of the cluster's kube-system namespace. It is empty if it cannot be read.
	UID types.UID `json:"uid"`
	// Target is the name of the Target through which the cluster was accessed.
	Target string `json:"target,omitempty"`
	// Server is a hash of the address and the certificate authority of the API server. It identifies the cluster if the
	// UID cannot be read. It is empty in inventories of earlier versions.
	Server string `json:"server,omitempty"`
	// Unverified is set in Inventory.Former if this cluster may be the item's current cluster, because the UID of one
	// of the clusters is not known.
	Unverified bool `json:"unverified,omitempty"`
}

// String returns the cluster as text for users, such as "the cluster of Target web".
func (c ClusterID) String() string {
	if c.UID == "" {
		return "the cluster of Target " + c.Target
	}
	return "the cluster " + string(c.UID) + " of Target " + c.Target
}

// Entry describes one object of an Inventory. A provider status may store an Entry without the reference, UID, Policy,
// AnnotateBeforeDelete and PatchBeforeDelete, if another list of the same status contains them. Entry.ToUnwritten
// returns a copy for a cluster that may not contain the object.
type Entry = object.Entry

// ComponentInfo contains the fields Component and Requires of a Desired.
type ComponentInfo = object.ComponentInfo

// A write sets some fields of an Entry. These constants are the sizes of these fields, encoded as JSON, in bytes.
const (
	sizeOfUID  = len(`,"u":"00000000-0000-0000-0000-000000000000"`)
	sizeOfKey  = len(`,"o":"0123456789abcdefghijkl"`)
	sizeOfHash = len(`,"h":"0123456789abcdef"`)
)

// size returns how long the inventory will be, encoded as JSON, when all objects have been written.
func (inv Inventory) size() int {
	data, err := json.Marshal(inv)
	if err != nil {
		return math.MaxInt // a patch cannot be encoded as JSON; preparer.check rejects such a patch earlier
	}
	out := len(data)
	for _, e := range inv.Entries {
		if e.UID == "" {
			out += sizeOfUID
		}
		if e.Fingerprint == "" {
			out += sizeOfKey
		}
		if e.Hash == "" {
			out += sizeOfHash
		}
		if e.Finish == "" && canFinish(e.Ref().GVK().GroupKind()) {
			out += sizeOfFinish
		}
	}
	return out
}

// isReleasedByPolicy reports whether the object stays in the cluster when it is removed from the inventory.
func isReleasedByPolicy(e Entry) bool { return e.Policy == PolicyKeep || e.Policy == PolicyIgnore }

// isReleased reports whether the object stays in the cluster when it is no longer desired.
func isReleased(e Entry) bool { return isReleasedByPolicy(e) || e.Adopted }

// Ref identifies an object in a cluster by its APIVersion, Kind, Namespace and Name. Namespace is empty for
// cluster-scoped kinds.
type Ref = object.Ref

// ToRef returns the reference to an object.
func ToRef(obj *unstructured.Unstructured) Ref { return object.ToRef(obj) }

// toID returns a Ref that contains the group instead of the API version. The result is therefore the same for all
// versions in which the API server serves the object.
func toID(ref Ref) Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// compareRefs orders references by API version, then by kind, then by namespace, then by name.
func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

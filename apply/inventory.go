// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Inventory lists the objects that may exist because of one item. The caller stores it between two calls, as compact
// JSON, and passes it to the next one. It is a superset: an object is added before it is written, and is removed only
// when it is known to be gone or is to be kept. Inventories are values, so the engine returns new ones.
type Inventory struct {
	Entries []Entry `json:"entries,omitempty"`
	// Cluster identifies the cluster of the objects. It is nil if that is not known. The engine does not use it.
	Cluster *Cluster `json:"cluster,omitempty"`
	// Former are the inventories of clusters that the item has left, until their objects are deleted there. The engine
	// does not use them.
	Former []Inventory `json:"former,omitempty"`
}

// Cluster names the cluster of an Inventory.
type Cluster struct {
	// UID is the UID of the cluster's namespace kube-system.
	UID types.UID `json:"uid"`
	// Target is the name of the Target through which the cluster was reached.
	Target string `json:"target,omitempty"`
}

// Entry is one object of an Inventory.
type Entry struct {
	APIVersion string `json:"v"`
	Kind       string `json:"k"`
	Namespace  string `json:"ns,omitempty"`
	Name       string `json:"n"`
	// UID is empty until the object is known to belong to the item. It may not exist, or belong to another owner.
	UID types.UID `json:"u,omitempty"`
	// Key is the object's ownership key after the item's last write. If it is empty, a watch cannot show changes.
	Key ownership.Key `json:"o,omitempty"`
	// Hash is the hash of the last written manifest. It is empty if the item never wrote the object.
	Hash string `json:"h,omitempty"`
	// Norm is a hash of how the API server stored the manifest's fields in the item's last write, for strategies that
	// read first. It is empty if they were stored as written.
	Norm string `json:"m,omitempty"`
	// Policy decides what happens when the object is no longer wanted. The default is Manage.
	Policy Policy `json:"p,omitempty"`
	// Adopted means that the object existed before the item wanted it, and is released instead of deleted.
	Adopted bool `json:"a,omitempty"`
	// PatchDue means that PatchAfterDeployment was not sent since the last write.
	PatchDue bool `json:"w,omitempty"`
	// Pending means that the object was written but is not usable yet, such as a CustomResourceDefinition that is not
	// established.
	Pending bool `json:"i,omitempty"`
	// Deleting means that the API server accepted the deletion, but the object is not yet known to be gone.
	Deleting bool `json:"d,omitempty"`
	// OnDelete means that the strategy is OnDelete, so the object is written only when it is gone.
	OnDelete bool `json:"l,omitempty"`
	// Shared means that another item owns the object as well, and that the object's label names that item.
	Shared bool `json:"s,omitempty"`
	Part
	// AnnotateBeforeDelete and PatchBeforeDelete are the same as in Desired.
	AnnotateBeforeDelete map[string]string `json:"annotateBeforeDelete,omitempty"`
	PatchBeforeDelete    map[string]any    `json:"patchBeforeDelete,omitempty"`
}

// Part is the part of the caller's code that an object belongs to, with what that part needs. See Desired.
type Part struct {
	Component string   `json:"c,omitempty"`
	Requires  []string `json:"q,omitempty"`
}

// Ref returns the name of the entry's object.
func (e Entry) Ref() Ref {
	return Ref{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

// These are the sizes of the fields that a write fills in, in bytes of JSON.
const (
	sizeOfUID  = len(`,"u":"00000000-0000-0000-0000-000000000000"`)
	sizeOfKey  = len(`,"o":"0123456789abcdefghijkl"`)
	sizeOfHash = len(`,"h":"0123456789abcdef"`)
)

// size returns the length that the JSON will have when all objects have been written.
func (inv Inventory) size() int {
	data, err := json.Marshal(inv)
	if err != nil {
		return math.MaxInt // a patch that is not JSON, which check refuses earlier
	}
	out := len(data)
	for _, e := range inv.Entries {
		if e.UID == "" {
			out += sizeOfUID
		}
		if e.Key == "" {
			out += sizeOfKey
		}
		if e.Hash == "" {
			out += sizeOfHash
		}
	}
	return out
}

// policy returns the policy of the entry, which is never empty.
func (e Entry) policy() Policy { return cmp.Or(e.Policy, Manage) }

// forget drops what was known about the object in the cluster, but keeps its name and the manifest's settings.
func (e *Entry) forget() {
	e.UID, e.Key, e.Hash, e.Norm = "", "", "", ""
	e.Adopted, e.PatchDue, e.Pending, e.Deleting, e.Shared = false, false, false, false, false
}

// slot is an Entry during a call. Only one goroutine works on a slot at a time.
type slot struct {
	Entry

	gone     bool
	fresh    bool // claimed by this call; the item has never written the object
	claimed  bool // wanted by a manifest of this call
	anyones  bool // to be deleted whatever its owner; never part of an inventory
	resource schema.GroupVersionResource
	version  string // resourceVersion of the answer to the last write

	// These fields hold the result of the last apply.
	live    *unstructured.Unstructured // the API server's answer
	changed bool
}

// book is an Inventory during a call.
type book map[Ref]*slot

func newBook(inv Inventory) book {
	out := make(book, len(inv.Entries))
	for _, entry := range inv.Entries {
		out[entry.Ref().id()] = &slot{Entry: entry}
	}
	return out
}

// at returns a copy of the slot of an object. The copy is gone if the inventory does not contain the object.
func (b book) at(id Ref) slot {
	if s := b[id]; s != nil {
		return *s
	}
	return slot{gone: true}
}

// inventory returns the remaining entries, in a fixed order.
func (b book) inventory() Inventory {
	out := Inventory{}
	for _, s := range b {
		if !s.gone {
			out.Entries = append(out.Entries, s.Entry)
		}
	}
	slices.SortFunc(out.Entries, func(x, y Entry) int { return compareRefs(x.Ref(), y.Ref()) })
	return out
}

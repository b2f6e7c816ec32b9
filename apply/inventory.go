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

// Inventory lists the objects that may exist because of one item. The caller stores it between two calls, in
// compact JSON, and hands it in again. It is a superset: an object is in it before it is written, and leaves
// only when it is known to be gone, or is to be kept. Inventories are values: the engine returns new ones.
type Inventory struct {
	Entries []Entry `json:"entries,omitempty"`
	// Cluster is where the objects are. It is nil if that is not known. The engine does not use it.
	Cluster *Cluster `json:"cluster,omitempty"`
	// Former are the inventories of clusters that the item has left, until their objects are deleted there. The engine
	// does not use them.
	Former []Inventory `json:"former,omitempty"`
}

// Cluster names the cluster of an Inventory.
type Cluster struct {
	// UID is that of the cluster's namespace kube-system.
	UID types.UID `json:"uid"`
	// Target is the name of the Target that led there.
	Target string `json:"target,omitempty"`
}

// Entry is one object of an Inventory.
type Entry struct {
	APIVersion string `json:"v"`
	Kind       string `json:"k"`
	Namespace  string `json:"ns,omitempty"`
	Name       string `json:"n"`
	// UID is empty until the object is known to be ours: it may not exist, or belong to somebody else.
	UID types.UID `json:"u,omitempty"`
	// Key is what the object's ownership key was after our last write. Empty: cannot be told from afar.
	Key ownership.Key `json:"o,omitempty"`
	// Hash is of the manifest that was written last. Empty: never written by us.
	Hash string `json:"h,omitempty"`
	// Norm is a hash of what the API server made of the manifest's fields in our last write, for strategies that read
	// first. Empty: they were stored as written.
	Norm string `json:"m,omitempty"`
	// Policy decides what happens when the object is no longer wanted; empty is Manage.
	Policy Policy `json:"p,omitempty"`
	// Adopted: it existed before us, and is released instead of deleted.
	Adopted bool `json:"a,omitempty"`
	// PatchDue: PatchAfterDeployment was not sent since the last write.
	PatchDue bool `json:"w,omitempty"`
	// Pending: written, but not usable yet (a CustomResourceDefinition that is not established).
	Pending bool `json:"i,omitempty"`
	// Deleting: the API server accepted the deletion; whether the object is gone is not known yet.
	Deleting bool `json:"d,omitempty"`
	// OnDelete: the strategy is OnDelete, so only that the object went away is a reason to write it.
	OnDelete bool `json:"l,omitempty"`
	// Shared: another item owns the object as well, and the object's label names that one.
	Shared bool `json:"s,omitempty"`
	Part
	// AnnotateBeforeDelete and PatchBeforeDelete are as in Desired.
	AnnotateBeforeDelete map[string]string `json:"annotateBeforeDelete,omitempty"`
	PatchBeforeDelete    map[string]any    `json:"patchBeforeDelete,omitempty"`
}

// Part is the part of the caller's code that an object belongs to, and what that part needs; see Desired.
type Part struct {
	Component string   `json:"c,omitempty"`
	Requires  []string `json:"q,omitempty"`
}

// Ref names the entry's object.
func (e Entry) Ref() Ref {
	return Ref{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

// Fields that a write fills in, in bytes of JSON.
const (
	sizeOfUID  = len(`,"u":"00000000-0000-0000-0000-000000000000"`)
	sizeOfKey  = len(`,"o":"0123456789abcdefghijkl"`)
	sizeOfHash = len(`,"h":"0123456789abcdef"`)
)

// size is how long the JSON will be when all objects were written.
func (inv Inventory) size() int {
	data, err := json.Marshal(inv)
	if err != nil {
		return math.MaxInt // a patch that is no JSON; check refuses it before
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

// policy is never empty.
func (e Entry) policy() Policy { return cmp.Or(e.Policy, Manage) }

// forget keeps what the entry is about, and drops what was known about the object in the cluster.
func (e *Entry) forget() {
	e.UID, e.Key, e.Hash, e.Norm = "", "", "", ""
	e.Adopted, e.PatchDue, e.Pending, e.Deleting, e.Shared = false, false, false, false, false
}

// slot is an Entry during a call. Only one goroutine works on a slot at a time.
type slot struct {
	Entry

	gone     bool
	fresh    bool // this call claimed it: the item has never written the object
	claimed  bool // some manifest of this call wants it
	anyones  bool // to be deleted whoever owns it; never of an inventory
	resource schema.GroupVersionResource
	version  string // resourceVersion of the answer to our last write

	// What the last apply came to.
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

// at is a copy of the slot of an object; gone: the inventory does not have it.
func (b book) at(id Ref) slot {
	if s := b[id]; s != nil {
		return *s
	}
	return slot{gone: true}
}

// inventory returns the entries that are left, in a fixed order.
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

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Inventory lists the objects of one item. The engine adds an object to the inventory before it writes the object. The
// inventory is therefore a superset of the existing objects. The engine removes an object from the inventory when the
// object is known to be gone, or when it stays in the cluster on purpose. The caller stores the Inventory as compact
// JSON and passes it to the next call. The engine does not modify an Inventory but returns a new one.
type Inventory struct {
	Entries []Entry `json:"entries,omitempty"`
	// Cluster identifies the cluster that contains the objects. It is nil if the cluster is not known. The engine does
	// not use this field.
	Cluster *Cluster `json:"cluster,omitempty"`
	// Former contains the inventories of clusters that the item no longer uses but that still contain some of its
	// objects. The engine does not use them, but they count towards Options.MaxInventory.
	Former []Inventory `json:"former,omitempty"`
	// Empty means that the item has no objects. If an inventory contains no objects and Empty is false, the inventory
	// may have been lost. The engine does not use Empty.
	Empty bool `json:"empty,omitempty"`
}

// Cluster identifies the cluster of an Inventory.
type Cluster struct {
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
func (c Cluster) String() string {
	if c.UID == "" {
		return "the cluster of Target " + c.Target
	}
	return "the cluster " + string(c.UID) + " of Target " + c.Target
}

// Entry describes one object of an Inventory. A provider status may store an Entry without the reference, UID, Policy,
// AnnotateBeforeDelete and PatchBeforeDelete, if another list of the same status contains them.
type Entry struct {
	APIVersion string `json:"v,omitempty"`
	Kind       string `json:"k,omitempty"`
	Namespace  string `json:"ns,omitempty"`
	Name       string `json:"n,omitempty"`
	// UID is the UID of the object. If it is empty, the object may not exist yet or may belong to another owner.
	UID types.UID `json:"u,omitempty"`
	// Key is the ownership key of the object after the item's last write. If Key is empty, watches cannot detect
	// whether other writers changed the object.
	Key ownership.Key `json:"o,omitempty"`
	// Hash is the hash of the manifest that was written last. It is empty if the item has not written the object yet.
	Hash string `json:"h,omitempty"`
	// Norm is a hash of the values that the API server stored for the fields of the manifest at the item's last write.
	// It is needed to detect drift if the API server stores a value in another form than that in the manifest. If the
	// API server stored all values unchanged, Norm is empty. Norm is used only for strategies that read the object
	// before they write it.
	Norm string `json:"m,omitempty"`
	// Policy determines what happens when the object is no longer desired. The default is Manage.
	Policy Policy `json:"p,omitempty"`
	// Adopted means that the object existed before the item wrote it for the first time. Such an object is released
	// instead of deleted.
	Adopted bool `json:"a,omitempty"`
	// PatchDue means that PatchAfterDeployment has not been sent yet since the object was last written.
	PatchDue bool `json:"w,omitempty"`
	// Pending means that the object was written but is not usable yet. An example is a CustomResourceDefinition that is
	// not established.
	Pending bool `json:"i,omitempty"`
	// Deleting means that the API server accepted the deletion, but the object is not known to be gone yet.
	Deleting bool `json:"d,omitempty"`
	// OnDelete means that the object has the strategy OnDelete. The item creates such an object but does not change it
	// later.
	OnDelete bool `json:"l,omitempty"`
	// Finish describes how far an object has come that finishes its work and may then disappear. It is empty for all
	// other objects.
	Finish Finish `json:"f,omitempty"`
	// Aggregates means that a controller fills the object from other objects of its kind, such as the rules of an
	// aggregated ClusterRole. It is deleted before these objects, because the controller would otherwise react to their
	// deletion and create it again.
	Aggregates bool `json:"g,omitempty"`
	// Shared means that several items own the object, and that the owner label does not name this item.
	Shared bool `json:"s,omitempty"`
	Part
	// AnnotateBeforeDelete and PatchBeforeDelete are copied from Desired.
	AnnotateBeforeDelete map[string]string `json:"annotateBeforeDelete,omitempty"`
	PatchBeforeDelete    map[string]any    `json:"patchBeforeDelete,omitempty"`
}

// Part contains the fields Component and Requires of a Desired.
type Part struct {
	Component string   `json:"c,omitempty"`
	Requires  []string `json:"q,omitempty"`
}

// Ref returns the reference to the object of the entry.
func (e Entry) Ref() Ref {
	return Ref{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

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
		return math.MaxInt // a patch cannot be encoded as JSON; preparing.check rejects such a patch earlier
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
		if e.Finish == "" && mayFinish(e.Ref().GVK().GroupKind()) {
			out += sizeOfFinish
		}
	}
	return out
}

// policy returns the policy of the entry. It returns Manage if the policy is empty.
func (e Entry) policy() Policy { return cmp.Or(e.Policy, Manage) }

// isReleased reports whether the object stays in the cluster when it is no longer desired.
func (e Entry) isReleased() bool { return e.isLetGo() || e.Adopted }

// Unwritten returns a copy of the entry for a cluster that may not contain the object. The copy contains the reference
// to the object and the settings from the manifest, but no information about the object in a cluster. It remains
// Adopted, so that an object that the cluster does contain is released and not deleted.
func (e Entry) Unwritten() Entry {
	adopted := e.Adopted
	e.forget()
	e.Adopted = adopted
	return e
}

// forget clears the fields that describe the object in the cluster. It keeps the reference to the object and the
// settings from the manifest.
func (e *Entry) forget() {
	e.UID, e.Key, e.Hash, e.Norm, e.Finish = "", "", "", "", ""
	e.Adopted, e.PatchDue, e.Pending, e.Deleting, e.Shared = false, false, false, false, false
}

// Ref identifies an object in a cluster. Namespace is empty for cluster-scoped kinds.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
}

// RefOf returns the reference to an object.
func RefOf(obj *unstructured.Unstructured) Ref {
	return Ref{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// GVK returns group, version and kind. If the APIVersion cannot be parsed, it is returned as the version.
func (r Ref) GVK() schema.GroupVersionKind { return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind) }

// Key returns the namespace and the name.
func (r Ref) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// String returns the reference as text for users, such as "Deployment.apps shop/web".
func (r Ref) String() string {
	return strings.TrimSpace(r.GVK().GroupKind().String() + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
}

// id returns a Ref that contains the group instead of the API version. The result is therefore the same for all
// versions in which the API server serves the object.
func (r Ref) id() Ref {
	r.APIVersion = r.GVK().Group
	return r
}

// compareRefs orders references by API version, then by kind, then by namespace, then by name.
func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// empty returns an object that has only an API version, a kind, a namespace and a name.
func (r Ref) empty() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(r.APIVersion)
	obj.SetKind(r.Kind)
	obj.SetNamespace(r.Namespace)
	obj.SetName(r.Name)
	return obj
}

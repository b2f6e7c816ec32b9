// SPDX-License-Identifier: Apache-2.0

package object

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Policy determines what the engine may do with an object. Package apply defines the values.
type Policy string

// Entry describes one object of an Inventory. A provider status may store an Entry without the reference, UID, Policy,
// AnnotateBeforeDelete and PatchBeforeDelete, if another list of the same status contains them.
type Entry struct {
	APIVersion string `json:"v,omitempty"`
	Kind       string `json:"k,omitempty"`
	Namespace  string `json:"ns,omitempty"`
	Name       string `json:"n,omitempty"`
	// UID is the UID of the object. If it is empty, the object may not exist yet or may belong to another owner.
	UID types.UID `json:"u,omitempty"`
	// Fingerprint is the fingerprint of the object after the item's last write. If it is empty, watches cannot detect
	// whether other writers changed the object.
	Fingerprint ownership.Fingerprint `json:"o,omitempty"`
	// Hash is the hash of the manifest that was written last. It is empty if the item has not written the object yet.
	Hash string `json:"h,omitempty"`
	// StoredHash is a hash of the values that the API server stored for the fields of the manifest at the item's last
	// write. It is needed to detect drift if the API server stores a value in another form than that in the manifest. If
	// the API server stored all values unchanged, StoredHash is empty. StoredHash is used only for strategies that read
	// the object before they write it.
	StoredHash string `json:"m,omitempty"`
	// Policy determines what happens when the object is no longer desired. The default is apply.PolicyManage.
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
	ComponentInfo
	// AnnotateBeforeDelete and PatchBeforeDelete are copied from apply.Desired.
	AnnotateBeforeDelete map[string]string `json:"annotateBeforeDelete,omitempty"`
	PatchBeforeDelete    map[string]any    `json:"patchBeforeDelete,omitempty"`
}

// ComponentInfo contains the fields Component and Requires of an apply.Desired.
type ComponentInfo struct {
	Component string   `json:"c,omitempty"`
	Requires  []string `json:"q,omitempty"`
}

// Ref returns the reference to the object of the entry.
func (e Entry) Ref() Ref {
	return Ref{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

// ToUnwritten returns a copy of the entry for a cluster that may not contain the object. The copy contains the
// reference to the object and the settings from the manifest, but no information about the object in a cluster. It
// remains Adopted, so that an object that the cluster does contain is released and not deleted.
func (e Entry) ToUnwritten() Entry {
	e.UID, e.Fingerprint, e.Hash, e.StoredHash, e.Finish = "", "", "", "", ""
	e.PatchDue, e.Pending, e.Deleting, e.Shared = false, false, false, false
	return e
}

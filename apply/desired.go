// SPDX-License-Identifier: Apache-2.0

package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Policy decides what the engine may do with an object. The values are those of Landscaper's manifest deployer,
// except Retain, which only this library has.
type Policy string

const (
	// Manage creates, updates and deletes the object. It adopts an object without an owner. Manage is the default.
	Manage Policy = "manage"
	// Fallback acts like Manage for objects that do not exist or already belong to the item. It leaves all others
	// alone.
	Fallback Policy = "fallback"
	// Keep creates and updates the object, but never deletes it.
	Keep Policy = "keep"
	// Ignore does nothing, and forgets an object that was managed before.
	Ignore Policy = "ignore"
	// Immutable creates and deletes the object, but never updates it. An object that existed before is always left
	// alone.
	Immutable Policy = "immutable"
	// Retain freezes the object as long as it is desired. The object is not created, changed or deleted, its labels
	// are not corrected, and changes by others are ignored. An object of the inventory stays there, and is deleted
	// when it is no longer desired. An object that the inventory does not contain is not added.
	Retain Policy = "retain"
)

// Strategy decides how an object is written.
type Strategy string

const (
	// Apply uses server-side apply. Fields of other managers stay, and fields that left the manifest are removed.
	// Apply is the default.
	Apply Strategy = "apply"
	// Update replaces the object, so fields that the manifest does not contain are removed.
	Update Strategy = "update"
	// Patch has the same outcome as Update, but sends a JSON merge patch of the differences.
	Patch Strategy = "patch"
	// Merge fills in only what is missing or zero in the cluster.
	Merge Strategy = "merge"
	// MergeOverwrite merges the manifest over the object in the cluster. The manifest wins, and lists are replaced.
	MergeOverwrite Strategy = "mergeOverwrite"
	// Recreate creates the object by server-side apply, and never changes one of its fields later. When the manifest
	// differs, or another writer changed one of the manifest's fields, the object is deleted, and a later call that
	// finds it gone creates it again. Only the owner's labels and annotations are corrected in place. Recreation
	// ignores the policy Keep, which only concerns the end of the item.
	Recreate Strategy = "recreate"
	// OnDelete creates a missing object, and changes nothing later. A different manifest takes effect when another
	// writer deletes the object. An object without an owner is adopted as with Apply, so it is written once.
	OnDelete Strategy = "onDelete"
)

// Desired is the desired state of one object. A list (an object with items) stands for its items.
type Desired struct {
	// Object is the manifest. It is not changed.
	Object *unstructured.Unstructured
	// Policy is the policy of the object. The default is Manage.
	Policy Policy
	// Strategy is the strategy of the object. The default is Options.Strategy.
	Strategy Strategy
	// Adoption applies if the object already exists and belongs to no item. The default is Options.Adoption.
	Adoption Adoption
	// Component names the part of the caller's code that the object belongs to, and Requires lists what that part
	// needs. Both are copied to the Entry unchanged, for callers that delete in their own order after that code is
	// gone. They are optional.
	Component string
	Requires  []string
	// Hint is added to the errors of the object, unless it is empty.
	Hint string
	// AnnotateBeforeCreate is merged over the annotations of the manifest at every apply.
	AnnotateBeforeCreate map[string]string
	// AnnotateBeforeDelete is added to the annotations of the object before it is deleted.
	AnnotateBeforeDelete map[string]string
	// PatchAfterDeployment is a JSON merge patch for Engine.AfterDeployment.
	PatchAfterDeployment map[string]any
	// PatchBeforeDelete is a JSON merge patch that is sent before the object is deleted.
	PatchBeforeDelete map[string]any
}

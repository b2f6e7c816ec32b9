// SPDX-License-Identifier: Apache-2.0

package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Policy says what the engine may do with an object. Source: Landscaper's manifest deployer; Retain is ours.
type Policy string

const (
	// Manage creates, updates and deletes; an object that nobody owns is adopted. The default.
	Manage Policy = "manage"
	// Fallback is Manage for objects that do not exist or are ours already; all others are left alone.
	Fallback Policy = "fallback"
	// Keep creates and updates, but never deletes.
	Keep Policy = "keep"
	// Ignore does nothing, and forgets an object that was managed before.
	Ignore Policy = "ignore"
	// Immutable creates and deletes, but never updates. An object that was there before is left alone for ever.
	Immutable Policy = "immutable"
	// Retain freezes the object as long as it is desired: it is neither created nor changed nor deleted, its labels neither,
	// and changes by others are nobody's business. If the inventory has it, the inventory keeps it, and it is
	// deleted when it is no longer desired. If not, it is not added.
	Retain Policy = "retain"
)

// Strategy says how an object is written.
type Strategy string

const (
	// Apply is server-side apply: fields of others stay, fields that left the manifest go. The default.
	Apply Strategy = "apply"
	// Update replaces the object: what the manifest does not say goes.
	Update Strategy = "update"
	// Patch has the same outcome as Update, sent as a JSON merge patch of the differences.
	Patch Strategy = "patch"
	// Merge fills only what is missing or zero in the cluster.
	Merge Strategy = "merge"
	// MergeOverwrite lays the manifest over what is in the cluster: the manifest wins, lists are replaced.
	MergeOverwrite Strategy = "mergeOverwrite"
	// Recreate creates by server-side apply, and never changes a field later on: when the manifest is another one, or somebody changed
	// one of its fields, the object is deleted, and created again by a call that finds it gone. Only the owner's labels and
	// annotations are put right in place. Recreation ignores the policy Keep, which is about the object's end.
	Recreate Strategy = "recreate"
	// OnDelete creates what is missing, and changes nothing later on: another manifest takes effect when
	// somebody deletes the object. An object that belongs to nobody is adopted as with Apply, so it is written once.
	OnDelete Strategy = "onDelete"
)

// Desired is one object as it shall be. A list (anything with items) stands for its items.
type Desired struct {
	// Object is the manifest. It is not changed.
	Object *unstructured.Unstructured
	// Policy: empty is Manage.
	Policy Policy
	// Strategy: empty is Options.Strategy.
	Strategy Strategy
	// Adoption is for an object that exists already and belongs to no item. Empty: Options.Adoption.
	Adoption Adoption
	// Component names the part of the caller's code that the object belongs to, and Requires what that part needs. Both go
	// to the Entry as they are, for callers that delete in an order of their own after that code is gone. Empty: nothing.
	Component string
	Requires  []string
	// Hint is added to the errors of the object. Empty: nothing.
	Hint string
	// AnnotateBeforeCreate is laid over the annotations of the manifest, at every apply.
	AnnotateBeforeCreate map[string]string
	// AnnotateBeforeDelete is put on the object before it is deleted.
	AnnotateBeforeDelete map[string]string
	// PatchAfterDeployment is a JSON merge patch for Engine.AfterDeployment.
	PatchAfterDeployment map[string]any
	// PatchBeforeDelete is a JSON merge patch that is sent before the object is deleted.
	PatchBeforeDelete map[string]any
}

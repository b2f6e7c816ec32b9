// SPDX-License-Identifier: Apache-2.0

package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Policy says what the engine may do with an object. Source: Landscaper's manifest deployer.
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
)

// Desired is one object as it shall be. A list (anything with items) stands for its items.
type Desired struct {
	// Object is the manifest. It is not changed.
	Object *unstructured.Unstructured
	// Policy: empty is Manage.
	Policy Policy
	// Strategy: empty is Options.Strategy.
	Strategy Strategy
	// AnnotateBeforeCreate is laid over the annotations of the manifest, at every apply.
	AnnotateBeforeCreate map[string]string
	// AnnotateBeforeDelete is put on the object before it is deleted.
	AnnotateBeforeDelete map[string]string
	// PatchAfterDeployment is a JSON merge patch for Engine.AfterDeployment.
	PatchAfterDeployment map[string]any
	// PatchBeforeDelete is a JSON merge patch that is sent before the object is deleted.
	PatchBeforeDelete map[string]any
}

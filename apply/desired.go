// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/internal/object"
)

// Policy determines what the engine may do with an object. The values are those of Landscaper's manifest deployer.
// Retain is an exception: it exists only in this library.
type Policy = object.Policy

const (
	// PolicyManage creates, updates and deletes the object. It adopts an object without an owner. Manage is the default.
	PolicyManage Policy = "manage"
	// PolicyFallback has the same effect as PolicyManage if the object does not exist or already belongs to the item. An
	// object that does not belong to the item stays unchanged.
	PolicyFallback Policy = "fallback"
	// PolicyKeep creates and updates the object, but never deletes it.
	PolicyKeep Policy = "keep"
	// PolicyIgnore leaves the object unchanged. If the item managed the object before, the object is removed from the
	// inventory.
	PolicyIgnore Policy = "ignore"
	// PolicyImmutable creates and deletes the object, but never updates it. It never changes an object that existed before
	// the item.
	PolicyImmutable Policy = "immutable"
	// PolicyRetain freezes the object as long as it is desired. The engine does not create, change or delete the object,
	// and ignores changes by others. If the inventory contains the object, the object stays in the inventory and is
	// deleted when it is no longer desired. If not, the object is not added to the inventory.
	PolicyRetain Policy = "retain"
)

// Strategy determines how an object is written.
type Strategy string

const (
	// StrategyApply uses server-side apply. It keeps the fields of other managers, and removes the fields that the
	// manifest no longer contains. Apply is the default.
	StrategyApply Strategy = "apply"
	// StrategyUpdate replaces the object. Fields that the manifest does not contain are removed.
	StrategyUpdate Strategy = "update"
	// StrategyPatch has the same result as StrategyUpdate, but sends only the differences, as a JSON merge patch.
	StrategyPatch Strategy = "patch"
	// StrategyMerge sets only the fields of the manifest that are missing or zero in the cluster.
	StrategyMerge Strategy = "merge"
	// StrategyMergeOverwrite merges the manifest over the object in the cluster. The values of the manifest take
	// precedence, and lists are replaced as a whole.
	StrategyMergeOverwrite Strategy = "mergeOverwrite"
	// StrategyRecreate creates the object by server-side apply and never changes its fields in place. If the manifest
	// changes, or another writer changes a field that the manifest contains, the object is deleted. A later call creates
	// it again when it is gone. Only the owner label and the owner annotations are corrected in place. An object with
	// PolicyKeep is recreated as well. PolicyKeep prevents a deletion only if the item no longer needs the object.
	StrategyRecreate Strategy = "recreate"
	// StrategyOnDelete creates a missing object and does not change it later. A changed manifest takes effect only after
	// another writer has deleted the object. If the object exists and has no owner, the engine adopts it in the same
	// way as with Apply, and therefore writes it once.
	StrategyOnDelete Strategy = "onDelete"
)

// Adoption determines what happens to an object that already exists and belongs to no item. Objects of other items are
// never adopted. An object that Landscaper's own deployer created for this item already belongs to the item.
type Adoption string

const (
	// AdoptionNever writes the fields of the manifest to the object, but never deletes the object. With
	// Options.RefuseUnowned, such an object is an error instead.
	AdoptionNever Adoption = "never"
	// AdoptionIfUnowned adopts the object. When the item no longer needs the object, it is released: the owner label and
	// the owner annotations are removed, and the object stays.
	AdoptionIfUnowned Adoption = "ifUnowned"
	// AdoptionAlways adopts the object as if the item had created it. The object is deleted together with the item.
	AdoptionAlways Adoption = "always"
)

// AllAdoptions returns all valid values of Adoption.
func AllAdoptions() []Adoption { return []Adoption{AdoptionNever, AdoptionIfUnowned, AdoptionAlways} }

// Desired describes the desired state of one object. If the manifest is a list (an object with the field items),
// Desired describes each object in the list and in the lists that it contains. Items without a kind and an API version
// get those of their list, as with kubectl.
type Desired struct {
	// Object is the manifest. The engine does not modify it.
	Object *unstructured.Unstructured
	// Policy is the policy for the object. The default is PolicyManage.
	Policy Policy
	// Strategy is the strategy for the object. The default is Options.Strategy.
	Strategy Strategy
	// Adoption determines what happens if the object already exists and belongs to no item. The default is
	// Options.Adoption.
	Adoption Adoption
	// Unchanged means that the object has not changed since a call of the engine found or wrote the desired state. If the
	// manifest is also the same as in that call, the engine sends no request for the object. Options.Force disables this.
	// Strategies other than StrategyApply need it, because the engine cannot detect on its own that an object is
	// unchanged.
	Unchanged bool
	// Component is the name of the component that contains the object, such as a node of a graph. Requires lists the
	// names of the components on which this component depends. Both fields are optional, and the engine only copies
	// them to the Entry. A caller can use them to delete objects in its own order, even when the code of a component no
	// longer exists.
	Component string
	Requires  []string
	// Hint is appended to the errors about the object, unless it is empty.
	Hint string
	// AnnotateBeforeCreate contains annotations that are added to the manifest. They replace annotations of the
	// manifest with the same keys.
	AnnotateBeforeCreate map[string]string
	// AnnotateBeforeDelete contains annotations that are added to the object before the object is deleted.
	AnnotateBeforeDelete map[string]string
	// PatchAfterDeployment is the JSON merge patch that Engine.AfterDeployment sends.
	PatchAfterDeployment map[string]any
	// PatchBeforeDelete is a JSON merge patch that is sent before the object is deleted.
	PatchBeforeDelete map[string]any
}

// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/internal/body"
	"github.com/deployerkit/deployerkit/apply/internal/object"
)

// Manifest is a desired object that is ready to be written, with the properties that follow from its policy, its
// strategy and its adoption.
type Manifest struct {
	Ref object.Ref
	// Resource is empty if the cluster does not serve the object at the moment.
	Resource schema.GroupVersionResource
	// Object contains the owner label and annotations, but no fields that only the API server sets.
	Object *unstructured.Unstructured
	// Hash is a hash of the manifest. If it differs from the hash of the last write, the object is written again.
	Hash     string
	Strategy *Strategy
	// Unchanged means that the caller knows that the object still has the desired state.
	Unchanged bool
	// IsCreateOnly means that the object is never updated, and never changed if it existed before the item.
	IsCreateOnly bool
	// SkipIfForeign means that an object that does not belong to the item stays unchanged.
	SkipIfForeign bool
	// CanShare means that the item may own the object together with other items, if the kind allows this.
	CanShare bool
	// RejectUnowned means that an existing object without an owner is an error.
	RejectUnowned bool
	// ReleaseAdopted means that an adopted object is released instead of deleted.
	ReleaseAdopted bool
	// PatchAfterDeployment is the merge patch that PatchAfterDeployment sends.
	PatchAfterDeployment map[string]any
}

// Strategy is a row in the table of the update strategies.
type Strategy struct {
	Name string
	// HashName replaces the name in the hash of a manifest. A change between two strategies with the same HashName is no
	// reason to write an object.
	HashName string
	// IsTracked means that the object is written by server-side apply and therefore has a fingerprint.
	IsTracked bool
	// OnlyCreates means that an existing object is not changed.
	OnlyCreates bool
	// Recreates means that an object is deleted and created again instead of changed.
	Recreates bool
	// IsWhole means that fields that the manifest does not contain are removed.
	IsWhole bool
	// SendsDifferences means that an update is sent as a merge patch.
	SendsDifferences bool
	// Replace is not nil if the new object is computed from the object in the cluster, which is therefore read before each
	// write. Replace computes it after the manifest has changed. Correct computes the values of the fields of the manifest
	// as long as the manifest stays the same.
	Replace, Correct body.Compute

	// write returns the first request that writes an object.
	write handler
}

// strategies is the table of the update strategies.
var strategies = []*Strategy{
	{Name: "apply", HashName: "apply", IsTracked: true, write: applyObject},
	{Name: "recreate", HashName: "apply", IsTracked: true, Recreates: true, write: recreateObject},
	{Name: "onDelete", HashName: "apply", OnlyCreates: true, write: createObject},
	{Name: "update", HashName: "update", IsWhole: true, Replace: body.Replace, Correct: body.Replace, write: updateObject},
	{Name: "patch", HashName: "patch", IsWhole: true, SendsDifferences: true, Replace: body.Replace, Correct: body.Replace, write: updateObject},
	{Name: "merge", HashName: "merge", Replace: body.Fill, Correct: body.Fill, write: updateObject},
	{Name: "mergeOverwrite", HashName: "mergeOverwrite", Replace: body.MergeOverwrite, Correct: body.Replace, write: updateObject},
}

// FindStrategy returns the strategy with a name, or nil.
func FindStrategy(name string) *Strategy {
	i := slices.IndexFunc(strategies, func(s *Strategy) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return strategies[i]
}

// mustRead reports whether the object must be read before it is written, because its strategy computes the new state
// from the current one.
func (s *Strategy) mustRead() bool { return s.Replace != nil }

// Hash returns a hash of a manifest, its strategy and PatchAfterDeployment.
func (s *Strategy) Hash(obj *unstructured.Unstructured, patchAfterDeployment map[string]any) string {
	return body.Hash([]any{obj.Object, s.HashName, patchAfterDeployment})
}

// compute returns the new state of a live object. After a change of the manifest, the strategy determines the complete
// object. As long as the manifest stays the same, compute corrects only the fields of the manifest, and keeps fields
// that other writers have added.
func (m *Manifest) compute(e object.Entry, live *unstructured.Unstructured) *unstructured.Unstructured {
	if e.UID != live.GetUID() || e.Hash != m.Hash {
		return m.Strategy.Replace(m.Object, live)
	}
	if e.StoredHash != "" && e.StoredHash == body.HashFields(m.Object, live) {
		return live
	}
	return m.setFields(live)
}

// setFields returns a copy of the live object in which the fields of the manifest are set.
func (m *Manifest) setFields(live *unstructured.Unstructured) *unstructured.Unstructured {
	return body.Set(live, m.Strategy.Correct(m.Object, live))
}

// computeStoredHash returns the value of Entry.StoredHash for an object as the API server stored it. It returns "" if
// the stored object matches the manifest. The stored object may differ from the manifest, for example because the API
// server rewrote a quantity, dropped a zero value, or called a webhook that changed a field.
func (m *Manifest) computeStoredHash(stored *unstructured.Unstructured) string {
	if !m.Strategy.mustRead() || equality.Semantic.DeepEqual(m.setFields(stored).Object, stored.Object) {
		return ""
	}
	return body.HashFields(m.Object, stored)
}

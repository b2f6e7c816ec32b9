// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
)

// StatusGVK is the apiVersion and kind of ProviderStatus.
var StatusGVK = schema.GroupVersionKind{Group: "stategraph.deployerkit.dev", Version: "v1alpha1", Kind: "ProviderStatus"}

// ProviderStatus is what the deployer of a graph keeps in the status of its items.
type ProviderStatus struct {
	metav1.TypeMeta `json:",inline"`
	// ObservedGeneration is the generation of the item that the last run saw.
	ObservedGeneration int64 `json:"observedGeneration"`
	// Components tell how far each component is; in the order of the graph. At most
	// MaxStatusComponents, of which those that are ready are left out first.
	Components []ComponentStatus `json:"components,omitempty"`
	// Omitted is how many more components there are.
	Omitted int `json:"omitted,omitempty"`
	// Undo are components with a Delete that may have run, in the order of their names. A part of the inventory.
	Undo []UndoEntry `json:"undo,omitempty"`
	// Inventory lists the objects in the target cluster.
	Inventory apply.Inventory `json:"inventory"`
}

// UndoEntry is a component with a Delete that may have run.
type UndoEntry struct {
	Name     string   `json:"n"`
	Requires []string `json:"q,omitempty"`
}

// Bounds of what a status says about components.
const (
	MaxStatusComponents = 200
	maxStatusBlockers   = 10
)

// componentStatuses is what a status says about the components of a walk, and how many were left out: of too many those
// stay that are not ready.
func (w *walked) componentStatuses() (components []ComponentStatus, omitted int) {
	omitted = max(0, len(w.states)-MaxStatusComponents)
	ready := 0 // how many ready ones are left out so far
	for _, state := range w.states {
		if state.State == StateReady && ready < omitted {
			ready++
			continue
		}
		state.BlockedBy = slices.Clip(state.BlockedBy[:min(len(state.BlockedBy), maxStatusBlockers)])
		components = append(components, state)
	}
	return components[:min(len(components), MaxStatusComponents)], omitted
}

// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
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
	// Components tell how far each component is; those that are not ready come first, then in the order of the graph. At
	// most MaxStatusComponents.
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

// componentStatuses is what a status says about the components of a walk, and how many were left out.
func (w *walked) componentStatuses() (components []ComponentStatus, omitted int) {
	components = make([]ComponentStatus, 0, len(w.states))
	for _, ready := range []bool{false, true} {
		for _, state := range w.states {
			if (state.State == StateReady) != ready {
				continue
			}
			state.BlockedBy = state.BlockedBy[:min(len(state.BlockedBy), maxStatusBlockers):min(len(state.BlockedBy), maxStatusBlockers)]
			components = append(components, state)
		}
	}
	kept := min(len(components), MaxStatusComponents)
	return components[:kept], len(components) - kept
}

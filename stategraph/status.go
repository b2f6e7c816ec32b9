// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
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

const statusPath = "status.providerStatus"

// decodeStatus reads what an earlier run stored; the zero status if none did.
func decodeStatus(di *lsv1alpha1.DeployItem) (*ProviderStatus, error) {
	status := &ProviderStatus{}
	if raw := di.Status.ProviderStatus; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, status); err != nil {
			return nil, deployerlib.ConfigError(statusPath, "%s", err.Error())
		}
		if got := status.GroupVersionKind(); got != StatusGVK {
			return nil, deployerlib.ConfigError(statusPath, "is of %s, want %s: another deployer had the item before", got, StatusGVK)
		}
	}
	status.SetGroupVersionKind(StatusGVK)
	return status, nil
}

// store puts the status into the item, in memory.
func (s *ProviderStatus) store(di *lsv1alpha1.DeployItem) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the provider status: %w", err)
	}
	di.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	return nil
}

// owe notes that a component has something to undo. It tells whether that is new.
func (s *ProviderStatus) owe(of unit) bool {
	i, found := slices.BinarySearchFunc(s.Undo, of.Component, func(e UndoEntry, name string) int { return strings.Compare(e.Name, name) })
	if found {
		s.Undo[i].Requires = of.Requires
		return false
	}
	s.Undo = slices.Insert(s.Undo, i, UndoEntry{Name: of.Component, Requires: of.Requires})
	return true
}

// undone notes that a component has nothing to undo any more.
func (s *ProviderStatus) undone(component string) {
	s.Undo = slices.DeleteFunc(s.Undo, func(e UndoEntry) bool { return e.Name == component })
}

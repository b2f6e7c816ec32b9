// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/deployerlib"
)

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

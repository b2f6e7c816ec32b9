// SPDX-License-Identifier: Apache-2.0

// Package registration is what a deployer says about itself on its lease, so that others can tell which items are its own.
package registration

import (
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

const (
	// Annotation of a lease holds the Registration as JSON.
	Annotation = "deployerkit.dev/registration"
	// Label is on leases with the annotation. Its value is "true".
	Label = "deployerkit.dev/deployer"
	// MaxBytes bounds the annotation. Longer selectors are left out.
	MaxBytes = 16 << 10
)

// Registration says which deploy items a deployer is responsible for.
type Registration struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"`
	Version  string `json:"version,omitempty"`
	// Type is the type of its items; empty if the source does not say.
	Type string `json:"type,omitempty"`
	// TargetSelectors and ItemSelector restrict the items. Empty: all.
	TargetSelectors []lsv1alpha1.TargetSelector `json:"targetSelectors,omitempty"`
	ItemSelector    string                      `json:"itemSelector,omitempty"`
	// Namespace restricts the items to one namespace. Empty: all.
	Namespace string `json:"namespace,omitempty"`
	// Partial is whether selectors are left out because they are too long.
	Partial bool `json:"partial,omitempty"`
	// HistoryPort is the port of the pod where its history is served; 0 if it is not.
	HistoryPort int `json:"historyPort,omitempty"`
}

// Encode returns the value of the annotation.
func (r Registration) Encode() string {
	raw, err := json.Marshal(r)
	if err != nil || len(raw) > MaxBytes {
		r.TargetSelectors, r.ItemSelector, r.Partial = nil, "", true
		if raw, err = json.Marshal(r); err != nil || len(raw) > MaxBytes {
			return ""
		}
	}
	return string(raw)
}

// SPDX-License-Identifier: Apache-2.0

// Package registration defines the registration of a deployer. The deployer stores its registration in an annotation of
// its lease. Other programs read the registration to determine which items the deployer is responsible for.
package registration

import (
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

const (
	// Annotation is the annotation of a lease that contains the Registration as JSON.
	Annotation = "deployerkit.dev/registration"
	// Label is the label of the leases that have the annotation [Annotation]. The value of the label is "true".
	Label = "deployerkit.dev/deployer"
	// MaxBytes is the maximum size of the value of [Annotation] in bytes. If the value would be larger, Encode omits
	// the selectors.
	MaxBytes = 16 << 10
)

// Registration describes which deploy items a deployer is responsible for.
type Registration struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"`
	Version  string `json:"version,omitempty"`
	// Type is the type of the deployer's items, or empty if the type is not known.
	Type string `json:"type,omitempty"`
	// TargetSelectors and ItemSelector restrict the items. If they are empty, there is no restriction.
	TargetSelectors []lsv1alpha1.TargetSelector `json:"targetSelectors,omitempty"`
	ItemSelector    string                      `json:"itemSelector,omitempty"`
	// Namespace restricts the items to one namespace. If it is empty, there is no restriction.
	Namespace string `json:"namespace,omitempty"`
	// Shard and Shards restrict the items to those of one shard. If Shards is 0, there is no restriction.
	Shard  int `json:"shard,omitempty"`
	Shards int `json:"shards,omitempty"`
	// Partial is set if selectors were omitted because the annotation would be too large.
	Partial bool `json:"partial,omitempty"`
	// HistoryPort is the port of the pod at which the deployer's history is served, or 0 if the history is not served.
	HistoryPort int `json:"historyPort,omitempty"`
}

// Encode returns the registration as the value of [Annotation]. It returns "" if the value would be larger than
// MaxBytes even without selectors.
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

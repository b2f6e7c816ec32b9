// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha1 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	health "github.com/gardener/landscaper/apis/deployer/utils/readinesschecks"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// These are the two versions that an item's configuration may have.
var (
	kindV1alpha1 = manifestv1alpha1.SchemeGroupVersion.WithKind("ProviderConfiguration")
	kindV1alpha2 = manifestv1alpha2.SchemeGroupVersion.WithKind("ProviderConfiguration")
)

// wire is the JSON form of a configuration. It contains the fields of the API module, those of older Landscapers that
// are still supported, and kubeconfig, which is only there to be refused with an explanation. M is how a version
// represents a manifest.
type wire[M any] struct {
	metav1.TypeMeta `json:",inline"`

	Kubeconfig                 json.RawMessage                           `json:"kubeconfig,omitempty"`
	UpdateStrategy             manifestv1alpha2.UpdateStrategy           `json:"updateStrategy,omitempty"`
	ReadinessChecks            *wireReadiness                            `json:"readinessChecks,omitempty"`
	DeleteTimeout              *duration                                 `json:"deleteTimeout,omitempty"`
	Manifests                  []M                                       `json:"manifests,omitempty"`
	Exports                    *wireExports                              `json:"exports,omitempty"`
	ContinuousReconcile        *wireSchedule                             `json:"continuousReconcile,omitempty"`
	DeletionGroups             []managedresource.DeletionGroupDefinition `json:"deletionGroups,omitempty"`
	DeletionGroupsDuringUpdate []managedresource.DeletionGroupDefinition `json:"deletionGroupsDuringUpdate,omitempty"`
}

type wireReadiness struct {
	DisableDefault bool        `json:"disableDefault,omitempty"`
	Timeout        *duration   `json:"timeout,omitempty"`
	Custom         []wireCheck `json:"custom,omitempty"`
}

type wireCheck struct {
	health.CustomReadinessCheckConfiguration `json:",inline"`

	Timeout *duration `json:"timeout,omitempty"`
}

type wireExports struct {
	DefaultTimeout *duration    `json:"defaultTimeout,omitempty"`
	Exports        []wireExport `json:"exports,omitempty"`
}

type wireExport struct {
	managedresource.Export `json:",inline"`

	Timeout *duration `json:"timeout,omitempty"`
}

type wireSchedule struct {
	Cron  string    `json:"cron,omitempty"`
	Every *duration `json:"every,omitempty"`
}

// widen converts v1alpha1 to v1alpha2. Everything but the manifests is the same there, and a bare manifest is one with
// policy manage.
func widen(old *wire[*runtime.RawExtension]) *wire[managedresource.Manifest] {
	wide := &wire[managedresource.Manifest]{
		TypeMeta: old.TypeMeta, Kubeconfig: old.Kubeconfig, UpdateStrategy: old.UpdateStrategy,
		ReadinessChecks: old.ReadinessChecks, DeleteTimeout: old.DeleteTimeout, Exports: old.Exports,
		DeletionGroups: old.DeletionGroups, DeletionGroupsDuringUpdate: old.DeletionGroupsDuringUpdate,
	}
	for _, raw := range old.Manifests {
		wide.Manifests = append(wide.Manifests, managedresource.Manifest{Policy: managedresource.ManagePolicy, Manifest: raw})
	}
	return wide
}

// duration is a Landscaper duration that remembers its fault, so that the fault can be reported together with its path.
type duration struct {
	value time.Duration
	fault string
}

// UnmarshalJSON reads "5m" or "none". It never fails.
func (d *duration) UnmarshalJSON(raw []byte) error {
	var parsed lsv1alpha1.Duration
	*d = duration{}
	if err := json.Unmarshal(raw, &parsed); err != nil {
		d.fault = "is " + string(bytes.TrimSpace(raw)) + `, want a duration such as "5m", or "none"`
		return nil
	}
	if parsed.Duration < 0 {
		d.fault = "is " + parsed.String() + ", must not be negative"
	}
	d.value = parsed.Duration
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (d duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(lsv1alpha1.Duration{Duration: d.value})
}

// bound reads an optional duration. 0, "none" and an absent duration mean no bound.
func bound(path string, d *duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if d.fault != "" {
		return 0, fault(path, "%s", d.fault)
	}
	return d.value, nil
}

// wireBound reverses bound.
func wireBound(d time.Duration) *duration {
	if d == 0 {
		return nil
	}
	return &duration{value: d}
}

// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// ReleaseStatus is the field release of the provider status. It describes the last deployment.
type ReleaseStatus struct {
	// Name and Namespace identify the release.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Revision is the number of the last revision, and Status its status. They are set only in Helm mode.
	Revision int            `json:"revision,omitempty"`
	Status   release.Status `json:"status,omitempty"`
	// SecretUID is the UID of the Secret that stores the record of the revision.
	SecretUID types.UID `json:"secretUID,omitempty"`
	// FirstFailure describes why the last operation failed. It is empty if the operation succeeded.
	FirstFailure string `json:"firstFailure,omitempty"`
	// Former lists releases that this release replaces, because the name or the namespace in the configuration has
	// changed. Their records still exist.
	Former []FormerRelease `json:"former,omitempty"`
	// Tests are the results of the tests of the chart in the last operation that created a revision.
	Tests []TestResult `json:"tests,omitempty"`
	// Chart and ChartVersion describe the deployed chart.
	Chart        string `json:"chart,omitempty"`
	ChartVersion string `json:"chartVersion,omitempty"`

	inputs `json:",inline"`
}

// FormerRelease identifies a release that another one replaces.
type FormerRelease struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// isHelm reports whether the item was deployed in Helm mode.
func (s *ReleaseStatus) isHelm() bool { return s != nil && s.Revision > 0 }

// fieldRelease is the name of the field release.
const fieldRelease = "release"

// DecodeStatus decodes the provider status of an item. Either this deployer or Landscaper's Helm deployer may have
// written it. The result `last` is nil if this deployer has not deployed the item yet.
func DecodeStatus(di *lsv1alpha1.DeployItem) (status *resources.Status, last *ReleaseStatus, err error) {
	if status, err = statusFormat.Decode(di); err != nil {
		return nil, nil, err
	}
	last, err = releaseOf(status)
	return status, last, err
}

// releaseOf decodes the field release of a provider status.
func releaseOf(status *resources.Status) (*ReleaseStatus, error) {
	raw, found := status.Fields[fieldRelease]
	if !found || string(raw) == "null" {
		return nil, nil
	}
	last := &ReleaseStatus{}
	if err := json.Unmarshal(raw, last); err != nil {
		return nil, deployerlib.NewConfigError("status.providerStatus."+fieldRelease, "%s", err.Error())
	}
	return last, nil
}

// setRelease sets the field release of the provider status, in memory. Nil removes the field.
func setRelease(r *resources.Run, last *ReleaseStatus) error {
	if last == nil {
		delete(r.Status.Fields, fieldRelease)
		return r.Managed.SetInventory(r.Managed.Inventory)
	}
	raw, err := json.Marshal(last)
	if err != nil {
		return fmt.Errorf("encode the release: %w", err)
	}
	r.Status.Fields[fieldRelease] = raw
	return r.Managed.SetInventory(r.Managed.Inventory)
}

// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/managed/resources"
)

var (
	// configKind is the kind of the configuration of an item.
	configKind = helmv1alpha1.SchemeGroupVersion.WithKind("ProviderConfiguration")
	// statusFormat is the form of the provider status.
	statusFormat = resources.StatusFormat{Kind: helmv1alpha1.SchemeGroupVersion.WithKind("ProviderStatus")}
)

// wire is the JSON form of a configuration. It contains the fields of Landscaper's API, those of its earlier versions,
// and the field deployerkit. The field kubeconfig is decoded only to reject it with an explanation.
type wire struct {
	metav1.TypeMeta `json:",inline"`
	resources.Spec  `json:",inline"`

	Kubeconfig           json.RawMessage                           `json:"kubeconfig,omitempty"`
	UpdateStrategy       string                                    `json:"updateStrategy,omitempty"`
	Chart                helmv1alpha1.Chart                        `json:"chart"`
	Name                 string                                    `json:"name"`
	Namespace            string                                    `json:"namespace"`
	CreateNamespace      bool                                      `json:"createNamespace,omitempty"`
	Values               json.RawMessage                           `json:"values,omitempty"`
	ExportsFromManifests []resources.ExportSpec                    `json:"exportsFromManifests,omitempty"`
	HelmDeployment       *bool                                     `json:"helmDeployment,omitempty"`
	HelmDeploymentConfig *helmv1alpha1.HelmDeploymentConfiguration `json:"helmDeploymentConfig,omitempty"`
	DeployerKit          Extension                                 `json:"deployerkit,omitzero"`
}

// Schedule returns the schedule of an item, for continuousreconcile.FromSpec; see [resources.GetSchedule]. The error is
// always nil.
func Schedule(di *lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
	return resources.GetSchedule(di, configKind), nil
}

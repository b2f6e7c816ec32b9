// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha1 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/managed/resources"
)

// The versions of an item's configuration.
var (
	kindV1alpha1 = manifestv1alpha1.SchemeGroupVersion.WithKind("ProviderConfiguration")
	kindV1alpha2 = manifestv1alpha2.SchemeGroupVersion.WithKind("ProviderConfiguration")
)

// statusFormat is the form of the provider status. The deployer writes v1alpha2. It also reads v1alpha1, which earlier
// versions of Landscaper's manifest deployer wrote.
var statusFormat = resources.StatusFormat{
	Kind:   manifestv1alpha2.SchemeGroupVersion.WithKind("ProviderStatus"),
	Former: []schema.GroupVersionKind{manifestv1alpha1.SchemeGroupVersion.WithKind("ProviderStatus")},
}

// providerConfiguration is the JSON form of a configuration. It contains the fields of the current API and the
// supported fields of older versions of Landscaper. The field kubeconfig is decoded only to reject it with an
// explanation. M is the type of a manifest, which depends on the version of the configuration.
type providerConfiguration[M any] struct {
	metav1.TypeMeta `json:",inline"`
	resources.Spec  `json:",inline"`

	Kubeconfig     json.RawMessage                 `json:"kubeconfig,omitempty"`
	UpdateStrategy manifestv1alpha2.UpdateStrategy `json:"updateStrategy,omitempty"`
	Manifests      []M                             `json:"manifests,omitempty"`
}

// convertToV1alpha2 converts v1alpha1 to v1alpha2. The versions differ only in the manifests. Each manifest in v1alpha1
// gets the policy "manage" in v1alpha2.
func convertToV1alpha2(old *providerConfiguration[*runtime.RawExtension]) *providerConfiguration[managedresource.Manifest] {
	wide := &providerConfiguration[managedresource.Manifest]{
		TypeMeta: old.TypeMeta, Spec: old.Spec, Kubeconfig: old.Kubeconfig, UpdateStrategy: old.UpdateStrategy,
	}
	for _, raw := range old.Manifests {
		wide.Manifests = append(wide.Manifests, managedresource.Manifest{Policy: managedresource.ManagePolicy, Manifest: raw})
	}
	return wide
}

// getSchedule returns the schedule of an item, for continuousreconcile.FromSpec; see [resources.GetSchedule]. The error
// is always nil.
func getSchedule(di *lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
	return resources.GetSchedule(di, kindV1alpha2), nil
}

// DecodeStatus decodes the provider status of an item. Either this deployer or Landscaper's manifest deployer (in
// version v1alpha1 or v1alpha2) may have written it. It returns the errors of resources.StatusFormat.Decode.
func DecodeStatus(di *lsv1alpha1.DeployItem) (*resources.Status, error) {
	return statusFormat.Decode(di)
}

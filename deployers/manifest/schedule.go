// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// Schedule returns the schedule of an item, for continuousreconcile.FromSpec. It is called at every event, so it does
// not decode the rest of the configuration. It returns nil if there is no schedule, and for an invalid configuration,
// which Decode reports. The error is always nil.
func Schedule(di *lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
	var partial struct {
		metav1.TypeMeta     `json:",inline"`
		ContinuousReconcile *wireSchedule `json:"continuousReconcile"`
	}
	if di.Spec.Configuration == nil || json.Unmarshal(di.Spec.Configuration.Raw, &partial) != nil {
		return nil, nil
	}
	in := partial.ContinuousReconcile
	if in == nil || partial.GroupVersionKind() != kindV1alpha2 || (in.Every != nil && in.Every.fault != "") {
		return nil, nil
	}
	spec := in.schedule()
	if schedule, err := continuousreconcile.Schedule(spec); schedule == nil || err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return spec, nil
}

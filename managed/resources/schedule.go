// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// GetSchedule returns the schedule in the configuration of an item, or nil if there is none. The configuration must
// contain a Spec and have one of the given kinds. GetSchedule is meant for continuousreconcile.FromSpec, which calls it
// for every event. It therefore decodes only the schedule. If the configuration is invalid, GetSchedule returns nil,
// and Spec.ToConfig returns the error.
func GetSchedule(di *lsv1alpha1.DeployItem, kinds ...schema.GroupVersionKind) *cr.ContinuousReconcileSpec {
	var partial struct {
		metav1.TypeMeta     `json:",inline"`
		ContinuousReconcile *ScheduleSpec `json:"continuousReconcile"`
	}
	if di.Spec.Configuration == nil || json.Unmarshal(di.Spec.Configuration.Raw, &partial) != nil {
		return nil
	}
	if !slices.Contains(kinds, partial.GroupVersionKind()) {
		return nil
	}
	spec, _ := partial.ContinuousReconcile.toSchedule() // Spec.ToConfig returns the error
	return spec
}

// toSchedule validates a schedule and converts it to the type of the API module. It returns nil if the schedule is
// missing or empty.
func (s *ScheduleSpec) toSchedule() (*cr.ContinuousReconcileSpec, error) {
	if s == nil {
		return nil, nil
	}
	if _, err := parseDuration("continuousReconcile.every", s.Every); err != nil {
		return nil, err
	}
	spec := &cr.ContinuousReconcileSpec{Cron: s.Cron}
	if s.Every != nil {
		spec.Every = &lsv1alpha1.Duration{Duration: s.Every.value}
	}
	schedule, err := continuousreconcile.ParseSchedule(spec)
	if err != nil {
		return nil, newConfigError("continuousReconcile", "%s", err.Error())
	}
	if schedule == nil {
		return nil, nil
	}
	return spec, nil
}

// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/targets"
)

// StrategyApply is server-side apply, which Landscaper's own manifest deployer does not have.
const StrategyApply manifestv1alpha2.UpdateStrategy = "apply"

// Options are defaults for what an item does not specify, and settings of the deployer.
type Options struct {
	// Strategy is the update strategy. Empty means StrategyApply. Landscaper's own manifest deployer uses
	// manifestv1alpha2.UpdateStrategyUpdate.
	Strategy manifestv1alpha2.UpdateStrategy
	// ExportTimeout bounds how long a run waits for an export whose item sets no bound. Zero means as long as the
	// item's timeout allows.
	ExportTimeout time.Duration
	// Targets is what Targets may ask for. The zero value is the strictest policy.
	Targets targets.Policy
	// TargetLimits bounds the resources that targets use. The zero value means the defaults.
	TargetLimits targets.Limits
	// Adoption selects what is done with objects that already exist and belong to no item. Empty means apply.AdoptNever
	// for kinds that hold data, and apply.AdoptIfUnowned for others.
	Adoption apply.Adoption
	// CleanUpFirst makes an item that moves to another cluster wait until its objects in the old one are deleted.
	// Without it, the item is deployed to the new cluster first.
	CleanUpFirst bool
	// Fights configures when repeated changes by others count as a fight, and how long the deployer then waits before
	// it corrects them. The zero value means the defaults.
	Fights watch.GuardOptions
	// Recreate deletes objects whose immutable fields changed, and creates them again. Without it, such a change is an
	// error that names the field.
	Recreate bool
	// SharedKinds are kinds of which one object may be in several items. The last item that goes deletes the object. A
	// nil slice means apply.DefaultSharedKinds, and an empty one means none.
	SharedKinds []schema.GroupKind
	// WrapTransport wraps the transport to each target. It sees every request, without credentials. It may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// Validate reports every invalid option.
func (o Options) Validate() error {
	var faults []error
	if o.Strategy != "" && !slices.Contains(strategies, o.Strategy) {
		faults = append(faults, fmt.Errorf("default strategy: is %q, want one of %q", o.Strategy, strategies))
	}
	if o.Adoption != "" && !slices.Contains(apply.Adoptions(), o.Adoption) {
		faults = append(faults, fmt.Errorf("adoption: is %q, want one of %q", o.Adoption, apply.Adoptions()))
	}
	if o.ExportTimeout < 0 {
		faults = append(faults, fmt.Errorf("export timeout: is %s, must not be negative", o.ExportTimeout))
	}
	faults = append(faults, o.TargetLimits.Validate())
	for _, kind := range o.SharedKinds {
		if kind.Kind == "" {
			faults = append(faults, fmt.Errorf("shared kinds: %q has no kind, want one such as Namespace or Issuer.cert-manager.io", kind))
		}
	}
	return errors.Join(faults...)
}

// Config is an item's configuration of any version, checked, converted and with defaults. All durations are upper
// bounds within the time that is left for the job, and 0 means no bound.
type Config struct {
	// Strategy selects how objects are written. It is never empty.
	Strategy manifestv1alpha2.UpdateStrategy
	// Manifests are in the item's order. Their policies are never empty, and their manifests are JSON objects. Expand
	// returns the objects.
	Manifests []managedresource.Manifest

	// DisableDefaultReadiness switches off readiness.Of for the item's objects.
	DisableDefaultReadiness bool
	// ReadinessTimeout bounds all readiness checks together.
	ReadinessTimeout time.Duration
	// Checks are in the item's order, including disabled ones.
	Checks []Check

	// Exports are in the item's order.
	Exports []Export

	// DeleteTimeout bounds how long a run waits for deleted objects.
	DeleteTimeout time.Duration
	// DeletionGroups is the order in which objects are deleted with the item. If it is nil, the built-in order is used.
	DeletionGroups []managedresource.DeletionGroupDefinition
	// DeletionGroupsDuringUpdate is the order in which objects are deleted that are no longer wanted. If it is nil, the
	// built-in order is used.
	DeletionGroupsDuringUpdate []managedresource.DeletionGroupDefinition

	// ContinuousReconcile is the item's schedule, or nil if there is none.
	ContinuousReconcile *cr.ContinuousReconcileSpec
}

// Check is a custom readiness check with its bound.
type Check struct {
	*readiness.Check

	// Timeout bounds this check. Zero means that only Config.ReadinessTimeout does.
	Timeout time.Duration
}

// Export is a value that the item exports, ready to be read.
type Export struct {
	managedresource.Export

	// Timeout bounds the wait for this value. It is the export's own timeout, or else the item's default, or else that
	// of the deployer.
	Timeout time.Duration

	key      []string
	path     *jsonpath.Path
	pathInto *jsonpath.Path // of fromObjectRef
}

// Encode returns a configuration as v1alpha2, with the fields of older Landscapers if they are used. Decoding it again
// gives the same configuration.
func (c *Config) Encode() ([]byte, error) {
	out := wire[managedresource.Manifest]{
		UpdateStrategy: c.Strategy, Manifests: c.Manifests, DeleteTimeout: wireBound(c.DeleteTimeout),
		DeletionGroups: c.DeletionGroups, DeletionGroupsDuringUpdate: c.DeletionGroupsDuringUpdate,
	}
	out.SetGroupVersionKind(kindV1alpha2)
	if c.DisableDefaultReadiness || c.ReadinessTimeout != 0 || len(c.Checks) > 0 {
		out.ReadinessChecks = &wireReadiness{DisableDefault: c.DisableDefaultReadiness, Timeout: wireBound(c.ReadinessTimeout)}
		for _, check := range c.Checks {
			out.ReadinessChecks.Custom = append(out.ReadinessChecks.Custom,
				wireCheck{CustomReadinessCheckConfiguration: check.Spec, Timeout: wireBound(check.Timeout)})
		}
	}
	if len(c.Exports) > 0 {
		out.Exports = &wireExports{}
		for _, export := range c.Exports {
			out.Exports.Exports = append(out.Exports.Exports, wireExport{Export: export.Export, Timeout: wireBound(export.Timeout)})
		}
	}
	if spec := c.ContinuousReconcile; spec != nil {
		out.ContinuousReconcile = &wireSchedule{Cron: spec.Cron}
		if spec.Every != nil {
			out.ContinuousReconcile.Every = &duration{value: spec.Every.Duration}
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return raw, nil
}

// schedule converts the item's schedule.
func (w *wireSchedule) schedule() *cr.ContinuousReconcileSpec {
	spec := &cr.ContinuousReconcileSpec{Cron: w.Cron}
	if w.Every != nil {
		spec.Every = &lsv1alpha1.Duration{Duration: w.Every.value}
	}
	return spec
}

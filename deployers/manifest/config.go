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

// StrategyApply is server-side apply, which Landscaper's own manifest deployer
// does not have.
const StrategyApply manifestv1alpha2.UpdateStrategy = "apply"

// Options say what holds where an item says nothing.
type Options struct {
	// Strategy is the update strategy. Empty: StrategyApply. Landscaper's own
	// manifest deployer has manifestv1alpha2.UpdateStrategyUpdate.
	Strategy manifestv1alpha2.UpdateStrategy
	// ExportTimeout bounds how long a run waits for an export whose item sets
	// no bound. 0: as long as the item's timeout allows.
	ExportTimeout time.Duration
	// Targets is what Targets may ask for. Zero: the strictest.
	Targets targets.Policy
	// TargetLimits bound what targets can cost. Zero: the defaults.
	TargetLimits targets.Limits
	// Adoption is for objects that exist already and belong to no item. Empty: apply.AdoptNever for kinds that hold data,
	// else apply.AdoptIfUnowned.
	Adoption apply.Adoption
	// CleanUpFirst makes an item that moves to another cluster wait until its objects in the old one are deleted. Off: it is
	// deployed to the new cluster first.
	CleanUpFirst bool
	// Fights says when changes by others that come back count as a fight, and
	// how long to wait before putting them right then. Zero: the defaults.
	Fights watch.GuardOptions
	// Recreate deletes and creates objects whose immutable fields changed. Off:
	// such a change is an error that names the field.
	Recreate bool
	// SharedKinds are kinds of which one object may be in several items: the
	// last one that goes deletes it. nil stands for apply.DefaultSharedKinds, an empty list for none.
	SharedKinds []schema.GroupKind
	// WrapTransport sees every request to every target, without credentials.
	// nil: nobody does.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// Validate reports every option that makes no sense.
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

// Config is an item's configuration, whatever its version: checked, converted
// and with defaults. All durations are upper bounds within the time that is
// left for the job; 0 is no bound.
type Config struct {
	// Strategy says how objects are written; never empty.
	Strategy manifestv1alpha2.UpdateStrategy
	// Manifests in the item's order; their policies are never empty, and their
	// manifests are JSON objects. Expand gives the objects.
	Manifests []managedresource.Manifest

	// DisableDefaultReadiness switches off readiness.Of for the item's objects.
	DisableDefaultReadiness bool
	// ReadinessTimeout bounds all readiness checks together.
	ReadinessTimeout time.Duration
	// Checks in the item's order, disabled ones included.
	Checks []Check

	// Exports in the item's order.
	Exports []Export

	// DeleteTimeout bounds how long objects are waited for that are deleted.
	DeleteTimeout time.Duration
	// DeletionGroups is the order of deleting with the item; nil: the built-in one.
	DeletionGroups []managedresource.DeletionGroupDefinition
	// DeletionGroupsDuringUpdate is the order of deleting objects that are no
	// longer wanted; nil: the built-in one.
	DeletionGroupsDuringUpdate []managedresource.DeletionGroupDefinition

	// ContinuousReconcile is the item's schedule; nil: none.
	ContinuousReconcile *cr.ContinuousReconcileSpec
}

// Check is a custom readiness check with its bound.
type Check struct {
	*readiness.Check

	// Timeout bounds this check; 0: only Config.ReadinessTimeout.
	Timeout time.Duration
}

// Export is a value that the item exports, ready to be read.
type Export struct {
	managedresource.Export

	// Timeout bounds the waiting for this value: the item's own, else its
	// default, else that of the deployer.
	Timeout time.Duration

	key      []string
	path     *jsonpath.Path
	pathInto *jsonpath.Path // of fromObjectRef
}

// Encode writes a configuration as v1alpha2 with the fields of older
// Landscapers where they are used. Decoding it again gives the same.
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

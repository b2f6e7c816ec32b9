// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/targets"
)

// Options contains the settings of the deployer. Some of them are defaults for the configurations of items.
type Options struct {
	// Sources fetch charts. If Sources.Inline is nil, chart.Inline is used. Charts from the other sources that are nil
	// are not supported.
	Sources chart.Sources
	// ChartLimits restrict the archives of charts. The zero value selects the defaults.
	ChartLimits chart.Limits
	// RenderLimits restrict the rendering of charts. The zero value selects the defaults.
	RenderLimits release.Limits
	// Operations restrict how many operations on releases are under way at the same time. The zero value selects the
	// defaults.
	Operations OperationLimits
	// Strategy is the default update strategy for manifest mode. Empty means apply.StrategyApply. Landscaper's own Helm deployer
	// uses apply.StrategyUpdate.
	Strategy apply.Strategy
	// ExportTimeout limits how long a run waits for the value of an export if the item itself sets no limit. If it is
	// zero, the run waits until the timeout of the item.
	ExportTimeout time.Duration
	// Targets is the policy that restricts the content of Targets. The zero value is the strictest policy.
	Targets targets.Policy
	// TargetLimits limits the resources that targets may use. The zero value selects the defaults.
	TargetLimits targets.Limits
	// Adoption determines what happens in manifest mode to existing objects that belong to no item. Empty means
	// apply.AdoptionNever for the kinds whose objects contain data, and apply.AdoptionIfUnowned for all other kinds.
	Adoption apply.Adoption
	// CleanUpFirst determines the order if an item moves to another cluster. If it is true, the objects in the old
	// cluster are deleted before the item is deployed to the new cluster. Otherwise they are deleted afterwards.
	CleanUpFirst bool
	// Fights determines after how many repeated changes by another client the deployer delays its corrections, and for
	// how long. The zero value selects the defaults.
	Fights observe.FightOptions
	// Recreate allows the deployer in manifest mode to delete an object and create it again, if the chart changes an
	// immutable field of the object. Without Recreate, such a change is an error that names the field.
	Recreate bool
	// SharedKinds are the kinds whose objects may belong to several items. Such an object is deleted with the last of
	// its items. A nil slice means apply.DefaultSharedKinds. An empty slice means that no kind is shared.
	SharedKinds []schema.GroupKind
	// Metrics are the metrics of the deployer. It registers them. Nil means new metrics.
	Metrics *Metrics
	// WrapTransport wraps the transport of all requests to targets. The wrapper sees the requests without credentials.
	// It may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// Validate returns an error that describes all invalid options.
func (o Options) Validate() error {
	var faults []error
	if o.Strategy != "" && !slices.Contains(strategies, o.Strategy) {
		faults = append(faults, fmt.Errorf("default strategy: is %q, want one of %q", o.Strategy, strategies))
	}
	if o.Adoption != "" && !slices.Contains(apply.AllAdoptions(), o.Adoption) {
		faults = append(faults, fmt.Errorf("adoption: is %q, want one of %q", o.Adoption, apply.AllAdoptions()))
	}
	if o.ExportTimeout < 0 {
		faults = append(faults, fmt.Errorf("export timeout: is %s, must not be negative", o.ExportTimeout))
	}
	faults = append(faults, o.TargetLimits.Validate())
	for _, kind := range o.SharedKinds {
		if kind.Kind == "" {
			faults = append(faults, fmt.Errorf("shared kinds: %q does not name a kind, want a name such as Namespace or Issuer.cert-manager.io", kind))
		}
	}
	return errors.Join(faults...)
}

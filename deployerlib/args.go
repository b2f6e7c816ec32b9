// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/history"
	"github.com/deployerkit/deployerkit/targets"
)

// Defaults of DeployerArgs.
const (
	DefaultWorkers            = 10
	DefaultTargetShare        = 0.5
	DefaultGracePeriod        = 30 * time.Second
	DefaultMissingTargetGrace = 10 * time.Second

	defaultName         = "generic.deployer.deployerkit.dev"
	defaultPollInterval = 5 * time.Second
	defaultSecretMaxAge = time.Minute
	defaultBackoffMin   = time.Second
	defaultBackoffMax   = 5 * time.Minute
)

// Backoff bounds the waits between the retries of one failing item. They
// double from Min to Max, ±10 %, and start over with a success or a change of the item.
type Backoff struct {
	// Min is the wait after the first failure. Zero: 1 s.
	Min time.Duration
	// Max is the longest wait. Zero: 5 min.
	Max time.Duration
}

// DeployerArgs configures one deployer. Type and Deployer are mandatory, every
// other zero value gets the default that its comment names.
type DeployerArgs struct {
	// Name is written to status.deployer.name and names controller, events and
	// metrics. It must not change between releases: with target selectors, an item whose
	// Target is gone belongs to the deployer whose name it carries.
	Name string
	// Version is written to status.deployer.version. Default: the main module's version.
	Version string
	// Identity is written to status.deployer.identity. Default: Name (stable across restarts and replicas).
	Identity string
	// Type is the deploy item type that this deployer is responsible for.
	Type lsv1alpha1.DeployItemType
	// Deployer does the work.
	Deployer Deployer
	// TargetSelectors restrict responsibility to items with a matching target
	// or without target; empty: every target.
	TargetSelectors []lsv1alpha1.TargetSelector
	// ItemSelector restricts responsibility to items with matching labels, to
	// shard items between deployments. Default: every item.
	ItemSelector labels.Selector
	// Options are controller-runtime's. The default of MaxConcurrentReconciles is 10. With four or more, the library
	// runs one more item at a time if it is of a namespace of which none runs. Reconciler is set by the library.
	Options controller.Options

	// TargetShare is the part of the workers that the items of one target hold at most while items of others wait,
	// greater than 0 and at most 1. Default 0.5. See docs/targets.md.
	TargetShare float64

	// Revision forces a revision of the contract. Empty: detected per item.
	Revision contract.Revision
	// PollInterval is the wait before an item in phase Progressing is called again, ±10 %. Default 5 s.
	PollInterval time.Duration
	// Backoff bounds the retries of failing items.
	Backoff Backoff
	// GracePeriod is how long a call may go on after its context was cancelled,
	// and after the process was told to stop. Default 30 s.
	GracePeriod time.Duration
	// MissingTargetGrace is how long a deletion waits for a Target that does not
	// exist before the run fails; it counts from when the run missed the Target
	// first, also across restarts. Default 10 s.
	MissingTargetGrace time.Duration
	// SecretMaxAge is how long the secret of a target is used before it is read again. Default 1 min.
	SecretMaxAge time.Duration
	// Clock tells the time. Default: the real one.
	Clock clock.WithTickerAndDelayedExecution
	// TracerProvider gives a span per reconcile, phase and hook. Default: none are made.
	TracerProvider trace.TracerProvider
	// Registerer takes the metrics. Default: controller-runtime's registry.
	Registerer prometheus.Registerer
	// Observe is called for each step of each reconcile, in order per item, unless it is nil.
	// It must be fast and safe for concurrent use.
	Observe func(Step)
	// History takes a record of each reconcile. Default: none are kept. deployermain sets and serves one.
	History *history.Store
	// CountCalls is called with +1 before code of the deployer or of a hook runs for an item, and with -1 after it has
	// returned, even if it was abandoned before. nil counts nothing. It must be fast and safe for concurrent use. A process
	// whose calls have not all returned must not hand over its lease.
	CountCalls func(delta int)

	hooks *extension.ReconcileExtensionHooks // what ExtensionHooks returned, read once
}

// Default fills in every zero value that has a default.
func (a *DeployerArgs) Default() {
	a.Name = or(a.Name, defaultName)
	a.Version = or(a.Version, buildVersion())
	a.Identity = or(a.Identity, a.Name)
	a.PollInterval = or(a.PollInterval, defaultPollInterval)
	a.GracePeriod = or(a.GracePeriod, DefaultGracePeriod)
	a.MissingTargetGrace = or(a.MissingTargetGrace, DefaultMissingTargetGrace)
	a.SecretMaxAge = or(a.SecretMaxAge, defaultSecretMaxAge)
	a.Backoff.Min = or(a.Backoff.Min, defaultBackoffMin)
	a.Backoff.Max = or(a.Backoff.Max, max(defaultBackoffMax, a.Backoff.Min))
	a.TargetShare = or(a.TargetShare, DefaultTargetShare)
	a.Options.MaxConcurrentReconciles = or(a.Options.MaxConcurrentReconciles, DefaultWorkers)
	a.defaultParts()
}

// defaultParts fills in the collaborators.
func (a *DeployerArgs) defaultParts() {
	if a.Clock == nil {
		a.Clock = clock.RealClock{}
	}
	if a.TracerProvider == nil {
		a.TracerProvider = noop.NewTracerProvider()
	}
	if a.Registerer == nil {
		a.Registerer = metrics.Registry
	}
	if a.ItemSelector == nil {
		a.ItemSelector = labels.Everything()
	}
	if a.CountCalls == nil {
		a.CountCalls = func(int) {}
	}
	if a.Options.EnableWarmup == nil {
		a.Options.EnableWarmup = new(true)
	}
}

// Validate reports every fault at once. Call Default first.
func (a *DeployerArgs) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(a.Type != "", "type: required")
	check(a.Deployer != nil, "deployer: required")
	for _, msg := range validation.IsQualifiedName(a.Name) {
		check(false, "name %q: %s", a.Name, msg)
	}
	check(a.Revision == "" || slices.Contains(contract.Revisions(), a.Revision),
		"revision %q: must be one of %q or empty", a.Revision, contract.Revisions())
	check(a.PollInterval > 0, "pollInterval %s: must be positive", a.PollInterval)
	check(a.TargetShare > 0 && a.TargetShare <= 1, "targetShare %g: must be greater than 0 and at most 1", a.TargetShare)
	check(a.GracePeriod > 0, "gracePeriod %s: must be positive", a.GracePeriod)
	check(a.MissingTargetGrace > 0, "missingTargetGrace %s: must be positive", a.MissingTargetGrace)
	check(a.SecretMaxAge > 0, "secretMaxAge %s: must be positive", a.SecretMaxAge)
	check(a.Backoff.Min > 0 && a.Backoff.Max >= a.Backoff.Min, "backoff: want 0 < min <= max, have %s and %s", a.Backoff.Min, a.Backoff.Max)
	check(a.Options.Reconciler == nil, "options.reconciler: is set by the library")
	faults = append(faults, targets.Validate(a.TargetSelectors))
	if a.Deployer != nil {
		faults = append(faults, a.readHooks().Validate())
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("deployer arguments: %w", err)
	}
	return nil
}

// readHooks asks the deployer for its hooks, once, and keeps a copy.
func (a *DeployerArgs) readHooks() extension.ReconcileExtensionHooks {
	if a.hooks == nil {
		hooks := a.Deployer.ExtensionHooks().DeepCopy()
		a.hooks = &hooks
	}
	return *a.hooks
}

// info is what status.deployer says.
func (a *DeployerArgs) info() lsv1alpha1.DeployerInformation {
	return lsv1alpha1.DeployerInformation{Identity: a.Identity, Name: a.Name, Version: a.Version}
}

// or returns v, or fallback when v is zero.
func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// buildVersion is the version of the program's main module.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return strings.Trim(info.Main.Version, "()")
}

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

// These constants are the default values of fields of DeployerArgs.
const (
	DefaultWorkers            = 10
	DefaultTargetShare        = 0.5
	DefaultGracePeriod        = 30 * time.Second
	DefaultMissingTargetGrace = 10 * time.Second
	DefaultMinInterval        = time.Second

	defaultName         = "generic.deployer.deployerkit.dev"
	defaultPollInterval = 5 * time.Second
	defaultSecretMaxAge = time.Minute
	defaultBackoffMin   = time.Second
	defaultBackoffMax   = 5 * time.Minute
)

// Backoff limits the delays between the retries of a failing item. The delay doubles from Min to Max, with a jitter of
// ±10 %. A success or a change of the item resets the delay to Min. Until the delay has passed, nothing else starts an
// attempt either, apart from a change of the item, a new job, or a change of the item's Target or Context.
type Backoff struct {
	// Min is the delay after the first failure. The default is 1 s.
	Min time.Duration
	// Max is the longest delay. The default is 5 min.
	Max time.Duration
}

// DeployerArgs configures one deployer. Type and Deployer are required. Every other field has a default, which its
// comment describes.
type DeployerArgs struct {
	// Name is the value of status.deployer.name, and the name of the controller in events and metrics. It must not
	// change between releases. If target selectors are set and the Target of an item does not exist, the deployer is
	// responsible only if the status of the item contains this Name. The default is "generic.deployer.deployerkit.dev".
	Name string
	// Version is the value of status.deployer.version. The default is the version of the main module.
	Version string
	// Identity is the value of status.deployer.identity. The default is Name, which is the same after a restart and on
	// every replica.
	Identity string
	// Type is the deploy item type that this deployer is responsible for.
	Type lsv1alpha1.DeployItemType
	// Deployer implements the actions.
	Deployer Deployer
	// TargetSelectors restrict the deployer to items with a matching target or without a target. If there are none,
	// every target matches.
	TargetSelectors []lsv1alpha1.TargetSelector
	// ItemSelector restricts the deployer to items with matching labels, so that several deployments can share the items
	// of a type. By default, every item matches.
	ItemSelector labels.Selector
	// Shard restricts the deployer to the items of some namespaces. By default, it processes the items of all namespaces.
	Shard Shard
	// LeaderElection says that the manager elects a leader. The cache of a new leader may lack the last changes of the
	// former leader. Before its first background run of an item, the process therefore sends a write that changes
	// nothing, which fails if the cached version is not the newest one. Runs of jobs are always checked.
	// deployermain.NewManagers sets this field.
	LeaderElection bool
	// Options are the options of the controller. The default of MaxConcurrentReconciles is 10. If
	// MaxConcurrentReconciles is at least 4, there is an extra worker for namespaces: when all other workers are busy,
	// it runs an item of a namespace in which no other item is running. Reconciler must be nil, because the library
	// sets it.
	Options controller.Options

	// TargetShare is the maximum share of the workers that the items of one target may occupy while items of other
	// targets wait. It is greater than 0 and at most 1. The default is 0.5. See docs/targets.md.
	TargetShare float64

	// Revision forces a revision of the contract. By default, the revision is detected for each item.
	Revision contract.Revision
	// PollInterval is the delay, ±10 %, before the deployer is called again if the call has returned nil and
	// status.phase is Progressing. In Delete, this also applies to the phase Deleting, and in a ported deployer to each
	// phase of a run that has not ended. The default is 5 s.
	PollInterval time.Duration
	// Backoff limits the delays between the retries of failing items.
	Backoff Backoff
	// MinInterval is the minimum time between two background runs of an item if the second run was triggered by
	// Runtime.Trigger, for example because an object of the item has changed. A trigger in the meantime leads to a run
	// at the end of the interval. During a job, triggers may start ten calls in quick succession before the interval
	// applies. The default is 1 s.
	MinInterval time.Duration
	// GracePeriod is how long a call may continue after its context is cancelled. When the process is asked to stop, a
	// call first continues for one GracePeriod before its context is cancelled. The default is 30 s.
	GracePeriod time.Duration
	// MissingTargetGrace is how long the run of a deletion waits for a Target that does not exist. After that time, the
	// run fails. The period begins when the run first finds that the Target does not exist. A restart of the process
	// does not extend the period. The default is 10 s.
	MissingTargetGrace time.Duration
	// SecretMaxAge is how long the secret of a target is used before it is read again. The default is 1 min. A run that
	// Landscaper or a user requests reads the secret again in any case.
	SecretMaxAge time.Duration
	// Clock returns the current time. The default is the real clock.
	Clock clock.WithTickerAndDelayedExecution
	// TracerProvider provides a span per reconcile, phase and hook. By default there are no spans.
	TracerProvider trace.TracerProvider
	// Registerer registers the metrics. The default is the registry of controller-runtime.
	Registerer prometheus.Registerer
	// Observe is called for each step of each reconcile. It receives the steps of one item in order. It may be nil. The
	// function must be fast and safe for concurrent use.
	Observe func(Step)
	// History records each reconcile. By default, nothing is recorded. The package deployermain sets a store and serves
	// its content.
	History *history.Store
	// CountCalls is called with +1 before code of the deployer or of a hook runs for an item, and with -1 after this
	// code has returned, even if the library has abandoned the call. CountCalls may be nil. It must be fast and safe
	// for concurrent use. With the sum, a process can wait until all calls have returned before it hands over its
	// lease.
	CountCalls func(delta int)

	hooks *extension.ReconcileExtensionHooks // the result of ExtensionHooks, which is called once
}

// Default sets every field that has the zero value to its default.
func (a *DeployerArgs) Default() {
	a.Name = getOrDefault(a.Name, defaultName)
	a.Version = getOrDefault(a.Version, buildVersion())
	a.Identity = getOrDefault(a.Identity, a.Name)
	a.PollInterval = getOrDefault(a.PollInterval, defaultPollInterval)
	a.GracePeriod = getOrDefault(a.GracePeriod, DefaultGracePeriod)
	a.MissingTargetGrace = getOrDefault(a.MissingTargetGrace, DefaultMissingTargetGrace)
	a.SecretMaxAge = getOrDefault(a.SecretMaxAge, defaultSecretMaxAge)
	a.MinInterval = getOrDefault(a.MinInterval, DefaultMinInterval)
	a.Backoff.Min = getOrDefault(a.Backoff.Min, defaultBackoffMin)
	a.Backoff.Max = getOrDefault(a.Backoff.Max, max(defaultBackoffMax, a.Backoff.Min))
	a.TargetShare = getOrDefault(a.TargetShare, DefaultTargetShare)
	a.Options.MaxConcurrentReconciles = getOrDefault(a.Options.MaxConcurrentReconciles, DefaultWorkers)
	a.defaultParts()
}

// defaultParts sets the defaults of the fields that are interfaces, functions or pointers.
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

// Validate returns one error that lists every invalid field. Call Default first.
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
	check(a.Revision == "" || slices.Contains(contract.AllRevisions(), a.Revision),
		"revision %q: must be one of %q or empty", a.Revision, contract.AllRevisions())
	check(a.PollInterval > 0, "pollInterval %s: must be positive", a.PollInterval)
	check(a.TargetShare > 0 && a.TargetShare <= 1, "targetShare %g: must be greater than 0 and at most 1", a.TargetShare)
	check(a.GracePeriod > 0, "gracePeriod %s: must be positive", a.GracePeriod)
	check(a.MissingTargetGrace > 0, "missingTargetGrace %s: must be positive", a.MissingTargetGrace)
	check(a.SecretMaxAge > 0, "secretMaxAge %s: must be positive", a.SecretMaxAge)
	check(a.MinInterval > 0, "minInterval %s: must be positive", a.MinInterval)
	check(a.Backoff.Min > 0 && a.Backoff.Max >= a.Backoff.Min, "backoff: want 0 < min <= max, have %s and %s", a.Backoff.Min, a.Backoff.Max)
	check(a.Options.Reconciler == nil, "options.reconciler: must be nil, because the library sets it")
	faults = append(faults, a.Shard.validate(), targets.ValidateSelectors(a.TargetSelectors))
	if a.Deployer != nil {
		faults = append(faults, a.readHooks().Validate())
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("deployer arguments: %w", err)
	}
	return nil
}

// readHooks returns the hooks of the deployer. It calls ExtensionHooks once and stores a copy of the result.
func (a *DeployerArgs) readHooks() extension.ReconcileExtensionHooks {
	if a.hooks == nil {
		hooks := a.Deployer.ExtensionHooks().DeepCopy()
		a.hooks = &hooks
	}
	return *a.hooks
}

// info returns the value of status.deployer.
func (a *DeployerArgs) info() lsv1alpha1.DeployerInformation {
	return lsv1alpha1.DeployerInformation{Identity: a.Identity, Name: a.Name, Version: a.Version}
}

// getOrDefault returns v, or the parameter `fallback` if v is the zero value.
func getOrDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// buildVersion returns the version of the program's main module.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return strings.Trim(info.Main.Version, "()")
}

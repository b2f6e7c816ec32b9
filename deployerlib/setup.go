// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/deployerlib/internal/shares"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
	"github.com/deployerkit/deployerkit/internal/pace"
	"github.com/deployerkit/deployerkit/internal/rewatch"
	"github.com/deployerkit/deployerkit/targets"
)

// Add registers a deployer with the manager of the Landscaper cluster. Several deployers may share one manager. hostMgr
// is the manager of the cluster in which the deployer runs. If hostMgr is nil, the deployer runs in the Landscaper
// cluster.
//
// The controller runs under lsMgr. If you use leader election, configure it on lsMgr
// (manager.Options.LeaderElectionConfig may point to the host cluster). If leader election is configured only on
// hostMgr, the loss of the lease does not stop this controller. Add cannot detect this mistake. Also set
// DeployerArgs.LeaderElection.
//
// Add wraps the transport of lsMgr.GetHTTPClient, so that informers list their objects again after a restore of etcd.
// Call Add before lsMgr starts. A manager whose cache uses another HTTP client does not detect a restore and needs a
// restart.
//
// If fields of args are invalid, Add returns an error that lists all of them. It also returns the errors of UseRuntime
// and of the manager.
func Add(log logr.Logger, lsMgr, hostMgr manager.Manager, args DeployerArgs) error {
	if lsMgr == nil {
		return fmt.Errorf("add deployer %q: the Landscaper manager is required", args.Name)
	}
	args.Default()
	if err := args.Validate(); err != nil {
		return err
	}
	var host cluster.Cluster = lsMgr
	if hostMgr != nil {
		host = hostMgr
	}
	r, err := newReconciler(newAccess(lsMgr, args.Name), args)
	if err != nil {
		return err
	}
	if c := lsMgr.GetHTTPClient(); c != nil {
		c.Transport = rewatch.Wrap(c.Transport)
	}
	if err := checkWrapped(args.Deployer); err != nil {
		return fmt.Errorf("add deployer %q: %w", args.Name, err)
	}
	if user, ok := findOptional[RuntimeUser](args.Deployer); ok {
		if err := user.UseRuntime(r.newRuntime(lsMgr, host)); err != nil {
			return fmt.Errorf("add deployer %q: use runtime: %w", args.Name, err)
		}
	}
	log = log.WithName(args.Name)
	if p, ok := findOptional[interface{ describeUncalledMethods() []string }](args.Deployer); ok {
		for _, text := range p.describeUncalledMethods() {
			log.Info(text)
		}
	}
	return r.addController(lsMgr, log)
}

// access contains the clients and functions with which a reconciler accesses the Landscaper cluster.
type access struct {
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server
	items  itemReader
	warn   func(di *lsv1alpha1.DeployItem, reason, message string)
}

// newAccess returns the access to a cluster.
func newAccess(c cluster.Cluster, name string) access {
	recorder := c.GetEventRecorder(name)
	return access{
		client: c.GetClient(), live: c.GetAPIReader(), items: &cachedItems{cache: c.GetCache(), client: c.GetClient()},
		warn: func(di *lsv1alpha1.DeployItem, reason, message string) {
			recorder.Eventf(di, nil, corev1.EventTypeWarning, contract.OneLine(reason, maxEventReason), "ReconcileDeployItem", "%s", contract.EscapeBidi(message))
		},
	}
}

// newReconciler creates a reconciler and the objects that it uses.
func newReconciler(access access, args DeployerArgs) (*reconciler, error) {
	telemetry, err := newTelemetry(&args)
	if err != nil {
		return nil, err
	}
	tracker := itemstate.NewTracker()
	_, ignoresContext := args.Deployer.(ContextIgnorer)
	_, deletesWithoutContext := args.Deployer.(ContextFreeDeleter)
	events := &dispatcher{itemType: args.Type, selector: args.ItemSelector, shard: args.Shard, client: access.client, tracker: tracker, queue: &queue{}, now: args.Clock.Now}
	r := &reconciler{
		args: args, items: access.items, warn: access.warn, tracker: tracker, events: events, telemetry: telemetry,
		phaseRunner: &phaseRunner{hooks: args.readHooks(), telemetry: telemetry},
		loader: &loader{
			targets:  newFreshReader(access.client, access.live, args.Clock, func() *lsv1alpha1.Target { return &lsv1alpha1.Target{} }),
			contexts: newFreshReader(access.client, access.live, args.Clock, func() *lsv1alpha1.Context { return &lsv1alpha1.Context{} }),
			resolver: targets.NewResolver(access.live, args.Clock, args.SecretMaxAge),
			clock:    args.Clock, grace: args.MissingTargetGrace, ignoresContext: ignoresContext,
			deletesWithoutContext: ignoresContext || deletesWithoutContext,
		},
		caller: &caller{clock: args.Clock, pollInterval: args.PollInterval, telemetry: telemetry, limit: &pace.Limit{}},
		writer: statuswriter.New(statuswriter.Options{
			Client: access.client, Live: access.live, Clock: args.Clock, Telemetry: telemetry, LeaderElection: args.LeaderElection,
		}),
	}
	r.watchdog = &watchdog{
		clock: args.Clock, grace: args.GracePeriod, deployer: args.info(),
		writer: r.writer, queue: events.queue, telemetry: telemetry, warn: access.warn,
	}
	r.shares = shares.New(shares.Options{
		Workers: args.Options.MaxConcurrentReconciles, TargetShare: args.TargetShare,
		After:           func(d time.Duration, f func()) { args.Clock.AfterFunc(d, func() { go f() }) },
		Offer:           func(item types.NamespacedName) { events.queue.add(item, priorityOffered) },
		OnWaitingChange: telemetry.addWaiting,
	})
	events.evaluate, r.phases = r.evaluateContract, r.newPipeline()
	return r, nil
}

// maxEventReason is the maximum length of the reason of an event.
const maxEventReason = 128

// newRuntime returns the Runtime for the deployer.
func (r *reconciler) newRuntime(ls, host cluster.Cluster) Runtime {
	return Runtime{
		Landscaper: ls, Host: host, Targets: r.loader.resolver, Recorder: ls.GetEventRecorder(r.args.Name),
		Clock: r.args.Clock, Trigger: r.events.enqueueWithLowPriority, SetTargetHealth: r.shares.SetHealthFunc, readTarget: r.loader.readTarget,
		Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"deployer_type": string(r.args.Type)}, r.args.Registerer),
	}
}

// addController creates the controller and its watches.
func (r *reconciler) addController(mgr manager.Manager, log logr.Logger) error {
	options := r.args.Options
	options.Reconciler, options.MaxConcurrentReconciles = r, r.shares.MaxRunning()
	if options.LogConstructor == nil {
		options.LogConstructor = func(req *request) logr.Logger {
			if req == nil {
				return log
			}
			return log.WithValues("deployItem", req.String())
		}
	}
	c, err := controller.New(r.args.Name, mgr, options)
	if err != nil {
		return fmt.Errorf("create controller of deployer %q: %w", r.args.Name, err)
	}
	for _, src := range r.newSources(mgr) {
		if err := c.Watch(src); err != nil {
			return fmt.Errorf("add watch to controller of deployer %q: %w", r.args.Name, err)
		}
	}
	return nil
}

// newSources returns the watch sources: the queue itself, the items, and the objects to which items refer.
func (r *reconciler) newSources(c cluster.Cluster) []source.Source {
	return []source.Source{
		source.Func(r.events.queue.start),
		source.Func(func(ctx context.Context, _ workQueue) error {
			context.AfterFunc(ctx, r.shares.Close)
			r.telemetry.metrics.items.start(ctx, &itemSource{typ: string(r.args.Type), tracker: r.tracker, clock: r.args.Clock})
			return nil
		}),
		source.Kind(c.GetCache(), &lsv1alpha1.DeployItem{}, r.events.newItemHandler()),
		source.Kind(c.GetCache(), &lsv1alpha1.Target{}, r.newTargetHandler()),
		source.Kind(c.GetCache(), &lsv1alpha1.Context{}, r.newContextHandler()),
	}
}

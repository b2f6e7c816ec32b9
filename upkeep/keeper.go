// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/targets"
)

// Options configure a Keeper.
type Options struct {
	// Name is the name of the deployer for use in errors, such as "manifest". If it is empty, errors contain only the
	// word "deployer".
	Name string
	// Targets is the policy that restricts the content of Targets. The zero value is the strictest policy.
	Targets targets.Policy
	// TargetLimits limits the resources that targets may use. The zero value stands for the defaults.
	TargetLimits targets.Limits
	// Fights determines when repeated changes by other clients count as a fight, and how long the corrections are
	// delayed in a fight. The zero value stands for the defaults. The field Clock is ignored.
	Fights observe.FightOptions
	// CleanUpFirst determines the order when an item moves to another cluster. If it is true, the item waits until its
	// objects in the old cluster are deleted. Otherwise the item is deployed to the new cluster first.
	CleanUpFirst bool
	// WrapTransport wraps the transport of all requests to targets. The wrapper sees the requests without credentials.
	// WrapTransport may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// StatusGrace is the value of [readiness.Rules.Grace]. It applies to custom resources without a status, if the
	// definition of their kind declares a status or cannot be read. Such an object counts as not ready until its age
	// exceeds StatusGrace. The default is DefaultStatusGrace. A negative value stands for zero.
	StatusGrace time.Duration
	// ObjectChanged is called with the UID of an item whenever one of its objects changes. It is called only for kinds
	// for which the deployer has called [observe.Watcher.WatchObjects]. It must not block. It may be nil.
	ObjectChanged func(item types.UID)
}

// DefaultStatusGrace is the default of Options.StatusGrace.
const DefaultStatusGrace = 10 * time.Second

// Keeper maintains the objects of a deployer's items in their targets. It manages one client with watches for each
// target, and stores data about the items in memory. If the data is lost, the only consequence is additional
// reads. Create one Keeper per deployer. A Keeper is safe for concurrent use.
type Keeper struct {
	options Options
	items   *items

	// UseRuntime sets these fields.
	rt       deployerlib.Runtime
	clusters *clusters
	secrets  client.Client
	scape    *landscape
}

// New returns a Keeper. Call UseRuntime before you use the Keeper.
func New(o Options) *Keeper {
	o.StatusGrace = cmp.Or(o.StatusGrace, DefaultStatusGrace)
	k := &Keeper{options: o, items: newItems()}
	return k
}

// name returns the name of the deployer for use in errors.
func (k *Keeper) name() string { return strings.TrimSpace(k.options.Name + " deployer") }

// UseRuntime prepares the Keeper for use. Call it from the deployer's own method UseRuntime. It creates a pool of
// target clients, which is closed when the manager stops, and an uncached client for Secrets. It returns an error if
// rt.Landscaper is not a manager, if a limit is negative, or if a client cannot be created.
func (k *Keeper) UseRuntime(rt deployerlib.Runtime) error {
	mgr, ok := rt.Landscaper.(manager.Manager)
	if !ok {
		return fmt.Errorf("%s: the Landscaper cluster is %T, not a manager", k.name(), rt.Landscaper)
	}
	if err := k.options.TargetLimits.Validate(); err != nil {
		return fmt.Errorf("%s: %w", k.name(), err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register types: %w", err)
	}
	var err error
	if k.secrets, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper()}); err != nil {
		return fmt.Errorf("make client for Secrets: %w", err)
	}
	pool := targets.NewPool(targets.PoolOptions{
		Policy: k.options.Targets, Resolver: rt.Targets, Landscaper: mgr.GetConfig(), LandscaperClient: k.secrets, Clock: rt.Clock,
		WrapTransport: k.options.WrapTransport, Limits: k.options.TargetLimits,
	})
	if rt.JudgeTargets != nil {
		rt.JudgeTargets(pool.Health)
	}
	k.use(rt, pool)
	return mgr.Add(k.clusters)
}

// use connects the parts of the Keeper.
func (k *Keeper) use(rt deployerlib.Runtime, pool *targets.Pool) {
	k.rt, k.scape = rt, &landscape{reader: k.secrets, config: rt.Landscaper.GetConfig}
	k.items.clock, k.items.trigger = rt.Clock, rt.Trigger
	k.clusters = newClusters(k, pool)
}

// Runtime returns the Runtime that was passed to UseRuntime.
func (k *Keeper) Runtime() deployerlib.Runtime { return k.rt }

// Watches returns the number of open watches in all targets.
func (k *Keeper) Watches() int { return k.clusters.limit.Used() }

// Secrets returns a client for the types of core/v1 in the Landscaper cluster. It sends each read to the API server,
// because the manager's own client would cache all Secrets of the cluster.
func (k *Keeper) Secrets() client.Client { return k.secrets }

// Cluster returns the Cluster of a target, and opens it if necessary. The Cluster stays open as long as items need it.
// Cluster returns the errors of [targets.Pool.Get], or an error if the manager is not running.
func (k *Keeper) Cluster(ctx context.Context, target *lsv1alpha1.ResolvedTarget) (*Cluster, error) {
	return k.clusters.get(ctx, target)
}

// Thorough makes the next run of the item thorough: the run checks every object, even if no watch reported a change, and
// creates objects again that have finished their work and are gone. Call Thorough in ForceReconcile.
func (k *Keeper) Thorough(di *lsv1alpha1.DeployItem) {
	triggers := k.items.get(di).triggers
	triggers.RecreateFinished()
	triggers.ForceResync()
}

// Forget removes all data about an item and its objects from memory, and ends the background runs of the item.
// Run.Delete calls it. If an item disappears without a call of Run.Delete, the Keeper detects this after some time and
// forgets the item.
func (k *Keeper) Forget(uid types.UID) {
	k.clusters.leave(uid, nil)
	k.items.forget(uid)
}

// Value returns the value that Run.Value has stored for an item under a key, or nil if there is none.
func (k *Keeper) Value(uid types.UID, key any) any {
	if it := k.items.find(uid); it != nil {
		return it.values.get(key, nil)
	}
	return nil
}

// Values returns all values that Run.Value has stored under a key, by item. It first removes items from memory that no
// longer exist, according to the cache of the manager.
func (k *Keeper) Values(ctx context.Context, key any) map[types.NamespacedName]any {
	k.clusters.forgetGone(ctx)
	out := map[types.NamespacedName]any{}
	for uid, name := range k.items.keys() {
		if value := k.Value(uid, key); value != nil {
			out[name] = value
		}
	}
	return out
}

// Wake requests a background run of an item. Call it when something has changed on which the item depends. Wake ignores
// items for which there was no run and no Resume yet. Several calls lead to one run. A call during a run leads to
// exactly one further run. A run that begins for another reason also fulfils the request.
//
// The parameter `notBefore` is the earliest time of the run. The zero value means now. If several calls specify
// different times, the earliest applies. If an annotation of the item disables continuous reconcile, the run begins
// when continuous reconcile is enabled again.
func (k *Keeper) Wake(uid types.UID, notBefore time.Time) {
	if it := k.items.find(uid); it != nil {
		it.triggers.Request(notBefore)
	}
}

// event writes an event about an item. The parameter `item` is the item itself or a reference to it. If the event is
// about an object of the item, `related` refers to that object. Otherwise it is nil. The recorder combines similar
// events with the same `related`, and keeps only the text of the first one.
func (k *Keeper) event(item, related runtime.Object, kind, reason, message string) {
	k.rt.Recorder.Eventf(item, related, kind, reason, "ReconcileDeployItem", "%s", contract.EscapeBidi(message))
}

// setCondition sets a condition of an item in memory. If the message is empty, it removes the condition. It reports
// whether the condition changed.
func (k *Keeper) setCondition(di *lsv1alpha1.DeployItem, t lsv1alpha1.ConditionType, status lsv1alpha1.ConditionStatus, reason, message string) (changed bool) {
	conditions := &di.Status.Conditions
	before := contract.GetCondition(*conditions, t)
	if message == "" {
		*conditions = contract.RemoveCondition(*conditions, t)
		return before != nil
	}
	*conditions = contract.SetCondition(*conditions, t, status, reason, message, k.rt.Clock.Now())
	return before == nil || before.Message != message
}

// reporting adds two functions to the options of the apply engine: one that writes events about the item, and one that
// reports whether another owner of an object still exists. A function that the options already contain is kept.
func (k *Keeper) reporting(di *lsv1alpha1.DeployItem, o apply.Options) apply.Options {
	if o.Events == nil {
		o.Events = func(e apply.Event) {
			kind := corev1.EventTypeNormal
			if e.Reason == apply.ReasonMayRemain {
				kind = corev1.EventTypeWarning
			}
			k.event(di, related(e.Ref), kind, e.Reason, e.Ref.String()+": "+e.Message)
		}
	}
	if o.FindOwner == nil {
		o.FindOwner = k.findOwner
	}
	return o
}

// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// Options configure a Keeper.
type Options struct {
	// Name is the name of the deployer in errors, such as "manifest". If it is empty, errors contain only "deployer".
	Name string
	// Targets is the policy for what Targets may request. The zero value is the strictest policy.
	Targets targets.Policy
	// TargetLimits limit what targets can cost. The zero value stands for the defaults.
	TargetLimits targets.Limits
	// Fights decides when repeated changes by others count as a fight, and how long to wait before correcting them
	// then. The zero value stands for the defaults. The clock is that of the library.
	Fights watch.GuardOptions
	// CleanUpFirst makes an item that moves to another cluster wait until its objects in the old one are deleted.
	// Without it, the item is deployed to the new cluster first.
	CleanUpFirst bool
	// WrapTransport wraps the transport of every request to every target, without credentials. It may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// StatusGrace is how long an object without a status is not ready after its creation, if its kind has a status of
	// unknown shape. The default is DefaultStatusGrace. A negative value means no time.
	StatusGrace time.Duration
}

// DefaultStatusGrace is how long a new object of a kind with a status of unknown shape may take to get a status.
const DefaultStatusGrace = 10 * time.Second

// Keeper maintains the objects of a deployer's items in their targets. It holds one client with watches per target,
// and what is known about the items in memory. There is one Keeper per deployer. It is safe for concurrent use.
// Losing its memory only costs reads.
type Keeper struct {
	options Options
	items   *items

	// These fields are set by UseRuntime.
	rt       deployerlib.Runtime
	clusters *clusters
	secrets  client.Client
	scape    *landscape

	landscaperOnce sync.Once
	landscaper     *Landscaper
	landscaperErr  error
}

// New returns a Keeper, which works after UseRuntime.
func New(o Options) *Keeper {
	o.StatusGrace = cmp.Or(o.StatusGrace, DefaultStatusGrace)
	return &Keeper{options: o, items: newItems()}
}

// name returns the name for errors.
func (k *Keeper) name() string { return strings.TrimSpace(k.options.Name + " deployer") }

// UseRuntime makes the pool of target clients, which ends with the manager, and the uncached client for Secrets. Call
// it from the deployer's own UseRuntime. It returns an error if the Landscaper cluster is not a manager, if a limit
// is negative, or if a client cannot be made.
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
	if k.secrets, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: scheme}); err != nil {
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

// use connects the parts.
func (k *Keeper) use(rt deployerlib.Runtime, pool *targets.Pool) {
	k.rt, k.scape = rt, &landscape{reader: k.secrets, config: rt.Landscaper.GetConfig}
	k.items.clock, k.items.trigger = rt.Clock, rt.Trigger
	k.clusters = newClusters(k, pool)
}

// Runtime returns the argument of UseRuntime.
func (k *Keeper) Runtime() deployerlib.Runtime { return k.rt }

// Secrets returns a client of the Landscaper cluster for the types of core/v1. It asks the API server each time,
// because the manager's own client would cache every Secret of the cluster.
func (k *Keeper) Secrets() client.Client { return k.secrets }

// Cluster opens a target, which stays open until nothing is expected of it. It returns the errors of
// [targets.Pool.Get], or an error if the manager does not run (any more).
func (k *Keeper) Cluster(ctx context.Context, target *lsv1alpha1.ResolvedTarget) (*Cluster, error) {
	return k.clusters.get(ctx, target)
}

// Thorough makes the next run of the item thorough, so that it trusts no object to be unchanged. ForceReconcile needs
// that.
func (k *Keeper) Thorough(di *lsv1alpha1.DeployItem) { k.items.get(di).setThorough() }

// Forget removes what is known about an item and what is expected of its objects, and ends its background runs.
// Run.Delete calls it. Items that disappeared without a Delete are found and forgotten after a while.
func (k *Keeper) Forget(uid types.UID) {
	k.clusters.forget(uid)
	k.items.forget(uid)
}

// Wake requests a background run of an item, because something that it depends on changed. It ignores items that no
// run and no Resume has seen yet. Several calls lead to one run; a call during a run leads to exactly one more.
// notBefore is the earliest time of the run, or zero for now; of several times, the earliest counts. A run for
// another reason counts as well. While the item's owner has switched continuous reconcile off, the request waits.
func (k *Keeper) Wake(uid types.UID, notBefore time.Time) {
	if it := k.items.find(uid); it != nil {
		it.wake(notBefore)
	}
}

// event writes an event about an item. related is the object that it is about, or nil. Without it, the recorder would
// count what happens to several objects in one run as one repeated event, and name only the first.
func (k *Keeper) event(di *lsv1alpha1.DeployItem, related runtime.Object, kind, reason, message string) {
	k.rt.Recorder.Eventf(di, related, kind, reason, "ReconcileDeployItem", "%s", contract.EscapeBidi(message))
}

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

// Options of a Keeper.
type Options struct {
	// Name is what errors call the deployer, such as "manifest". Empty: just "deployer".
	Name string
	// Targets is what Targets may ask for. Zero: the strictest.
	Targets targets.Policy
	// TargetLimits bound what targets can cost. Zero: the defaults.
	TargetLimits targets.Limits
	// Fights says when changes by others that come back count as a fight, and how long to wait before putting them right
	// then. Zero: the defaults. The clock is that of the library.
	Fights watch.GuardOptions
	// CleanUpFirst makes an item that moves to another cluster wait until its objects in the old one are deleted. Off: it is
	// deployed to the new cluster first.
	CleanUpFirst bool
	// WrapTransport sees every request to every target, without credentials. nil: nobody does.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// StatusGrace is how long after its creation an object without a status is not ready, if its kind has a status of which
	// nothing is known. Zero: DefaultStatusGrace. Negative: no time.
	StatusGrace time.Duration
}

// DefaultStatusGrace is how long a new object of a kind with a status of unknown shape may take to get one.
const DefaultStatusGrace = 10 * time.Second

// Keeper keeps the objects of a deployer's items in their targets: it holds one
// client with watches per target, and what is known about the items in memory.
// There is one per deployer; it is safe for concurrent use. Losing its memory
// costs reads, nothing else.
type Keeper struct {
	options Options
	items   *items

	// Set by UseRuntime.
	rt       deployerlib.Runtime
	clusters *clusters
	secrets  client.Client
	scape    *landscape

	landscaperOnce sync.Once
	landscaper     *Landscaper
	landscaperErr  error
}

// New returns a Keeper that works after UseRuntime.
func New(o Options) *Keeper {
	o.StatusGrace = cmp.Or(o.StatusGrace, DefaultStatusGrace)
	return &Keeper{options: o, items: newItems()}
}

// name is for errors.
func (k *Keeper) name() string { return strings.TrimSpace(k.options.Name + " deployer") }

// UseRuntime makes the pool of target clients, which ends with the manager, and
// the live client of Secrets. Call it from the deployer's own UseRuntime.
// Errors: the Landscaper cluster is not a manager, a limit is negative, or a client cannot be made.
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

// use puts the parts together.
func (k *Keeper) use(rt deployerlib.Runtime, pool *targets.Pool) {
	k.rt, k.scape = rt, &landscape{reader: k.secrets, config: rt.Landscaper.GetConfig}
	k.items.clock, k.items.trigger = rt.Clock, rt.Trigger
	k.clusters = newClusters(k, pool)
}

// Runtime returns what UseRuntime was given.
func (k *Keeper) Runtime() deployerlib.Runtime { return k.rt }

// Secrets returns a client of the Landscaper cluster for the types of core/v1.
// It asks the API server each time: the manager's own would cache every Secret
// of the cluster.
func (k *Keeper) Secrets() client.Client { return k.secrets }

// Cluster opens a target; it stays open until nobody expects anything of it.
// Errors: those of [targets.Pool.Get], or the manager does not run (any more).
func (k *Keeper) Cluster(ctx context.Context, target *lsv1alpha1.ResolvedTarget) (*Cluster, error) {
	return k.clusters.get(ctx, target)
}

// Thorough makes the item's next run believe nothing to be unchanged, as
// ForceReconcile wants it.
func (k *Keeper) Thorough(di *lsv1alpha1.DeployItem) { k.items.get(di).setThorough() }

// Forget ends what is known about an item, what is expected of its objects, and
// its background runs. Run.Delete calls it. Items that went without a Delete are
// found and forgotten after a while.
func (k *Keeper) Forget(uid types.UID) {
	k.clusters.forget(uid)
	k.items.forget(uid)
}

// Wake wants a background run of an item, because something that it depends on
// changed. Items that no run and no Resume has seen yet are left alone. Several
// calls make one run; one during a run leads to exactly one more. notBefore is
// the earliest time, zero for now; the earliest of several counts. A run that
// comes for another reason serves as well. While the item's owner switched
// continuous reconcile off, the wish waits.
func (k *Keeper) Wake(uid types.UID, notBefore time.Time) {
	if it := k.items.find(uid); it != nil {
		it.wake(notBefore)
	}
}

// event writes an event about an item. related is the object that it is about,
// nil for none: without it, the recorder would count what happens to several
// objects in one run as one event that came again, and name only the first.
func (k *Keeper) event(di *lsv1alpha1.DeployItem, related runtime.Object, kind, reason, message string) {
	k.rt.Recorder.Eventf(di, related, kind, reason, "ReconcileDeployItem", "%s", contract.EscapeBidi(message))
}

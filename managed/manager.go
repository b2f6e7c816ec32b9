// SPDX-License-Identifier: Apache-2.0

package managed

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

// Options configure a ResourceManager.
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

// ResourceManager maintains the objects of a deployer's items in their targets. It manages one client with watches for
// each target, and stores data about the items in memory. If the data is lost, the only consequence is additional
// reads. Create one ResourceManager per deployer. A ResourceManager is safe for concurrent use.
type ResourceManager struct {
	options Options
	items   *items

	// UseRuntime sets these fields.
	rt           deployerlib.Runtime
	clusters     *clusters
	secretClient client.Client
	landscape    *landscape
}

// New returns a ResourceManager. Call UseRuntime before you use the ResourceManager.
func New(o Options) *ResourceManager {
	o.StatusGrace = cmp.Or(o.StatusGrace, DefaultStatusGrace)
	k := &ResourceManager{options: o, items: newItems()}
	return k
}

// name returns the name of the deployer for use in errors.
func (m *ResourceManager) name() string { return strings.TrimSpace(m.options.Name + " deployer") }

// UseRuntime prepares the ResourceManager for use. Call it from the deployer's own method UseRuntime. It creates a pool
// of target clients, which is closed when the manager stops, and an uncached client for Secrets. It returns an error if
// rt.Landscaper is not a manager, if a limit is negative, or if a client cannot be created.
func (m *ResourceManager) UseRuntime(rt deployerlib.Runtime) error {
	mgr, ok := rt.Landscaper.(manager.Manager)
	if !ok {
		return fmt.Errorf("%s: the Landscaper cluster is %T, not a manager", m.name(), rt.Landscaper)
	}
	if err := m.options.TargetLimits.Validate(); err != nil {
		return fmt.Errorf("%s: %w", m.name(), err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register types: %w", err)
	}
	var err error
	if m.secretClient, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper()}); err != nil {
		return fmt.Errorf("make client for Secrets: %w", err)
	}
	pool := targets.NewPool(targets.PoolOptions{
		Policy: m.options.Targets, Resolver: rt.Targets, Landscaper: mgr.GetConfig(), LandscaperClient: m.secretClient, Clock: rt.Clock,
		WrapTransport: m.options.WrapTransport, Limits: m.options.TargetLimits,
	})
	if rt.SetTargetHealth != nil {
		rt.SetTargetHealth(pool.GetHealth)
	}
	m.setRuntime(rt, pool)
	return mgr.Add(m.clusters)
}

// setRuntime connects the parts of the ResourceManager.
func (m *ResourceManager) setRuntime(rt deployerlib.Runtime, pool *targets.Pool) {
	m.rt, m.landscape = rt, &landscape{reader: m.secretClient, config: rt.Landscaper.GetConfig}
	m.items.clock, m.items.trigger = rt.Clock, rt.Trigger
	m.clusters = newClusters(m, pool)
}

// GetRuntime returns the Runtime that was passed to UseRuntime.
func (m *ResourceManager) GetRuntime() deployerlib.Runtime { return m.rt }

// CountWatches returns the number of open watches in all targets.
func (m *ResourceManager) CountWatches() int { return m.clusters.limit.CountOpenWatches() }

// GetSecretClient returns a client for the types of core/v1 in the Landscaper cluster. It sends each read to the API
// server, because the manager's own client would cache all Secrets of the cluster.
func (m *ResourceManager) GetSecretClient() client.Client { return m.secretClient }

// OpenCluster returns the Cluster of a target, and opens it if necessary. The Cluster stays open as long as items need
// it. OpenCluster returns the errors of [targets.Pool.Get], or an error if the manager is not running.
func (m *ResourceManager) OpenCluster(ctx context.Context, target *lsv1alpha1.ResolvedTarget) (*Cluster, error) {
	return m.clusters.get(ctx, target)
}

// ForceResync makes the next run of the item a forced resync: the run checks every object, even if no watch reported a
// change, and creates objects again that have finished their work and are gone. Call ForceResync in ForceReconcile.
func (m *ResourceManager) ForceResync(di *lsv1alpha1.DeployItem) {
	triggers := m.items.get(di).triggers
	triggers.RecreateFinished()
	triggers.ForceResync()
}

// Forget removes all data about an item and its objects from memory, and ends the background runs of the item.
// Run.Delete calls it. If an item disappears without a call of Run.Delete, the ResourceManager detects this after some
// time and forgets the item.
func (m *ResourceManager) Forget(uid types.UID) {
	m.clusters.removeObjects(uid, nil)
	m.items.forget(uid)
}

// GetValue returns the value that Run.GetOrCreateValue has stored for an item under a key, or nil if there is none.
func (m *ResourceManager) GetValue(uid types.UID, key any) any {
	if it := m.items.find(uid); it != nil {
		return it.values.get(key, nil)
	}
	return nil
}

// ListValues returns all values that Run.GetOrCreateValue has stored under a key, by item. It first removes items from
// memory that no longer exist, according to the cache of the manager.
func (m *ResourceManager) ListValues(ctx context.Context, key any) map[types.NamespacedName]any {
	m.clusters.forgetDeletedItems(ctx)
	out := map[types.NamespacedName]any{}
	for uid, name := range m.items.listKeys() {
		if value := m.GetValue(uid, key); value != nil {
			out[name] = value
		}
	}
	return out
}

// Trigger requests a background run of an item. Call it when something has changed on which the item depends. Trigger
// ignores items for which there was no run and no Resume yet. Several calls lead to one run. A call during a run leads
// to exactly one further run. A run that begins for another reason also fulfils the request.
//
// The run begins at notBefore at the earliest. The zero value means now. If several calls specify different times, the
// earliest applies. If an annotation of the item disables continuous reconcile, the run begins when continuous
// reconcile is enabled again.
func (m *ResourceManager) Trigger(uid types.UID, notBefore time.Time) {
	if it := m.items.find(uid); it != nil {
		it.triggers.Request(notBefore)
	}
}

// recordEvent writes an event about item, which is the item itself or a reference to it. If the event is about an
// object of the item, related refers to that object. Otherwise it is nil. The recorder combines similar events with the
// same related object, and keeps only the text of the first one.
func (m *ResourceManager) recordEvent(item, related runtime.Object, kind, reason, message string) {
	m.rt.Recorder.Eventf(item, related, kind, reason, "ReconcileDeployItem", "%s", contract.EscapeBidi(message))
}

// setCondition sets a condition of an item in memory. If the message is empty, it removes the condition. It reports
// whether the condition changed.
func (m *ResourceManager) setCondition(di *lsv1alpha1.DeployItem, t lsv1alpha1.ConditionType, status lsv1alpha1.ConditionStatus, reason, message string) (changed bool) {
	conditions := &di.Status.Conditions
	before := contract.GetCondition(*conditions, t)
	if message == "" {
		*conditions = contract.RemoveCondition(*conditions, t)
		return before != nil
	}
	*conditions = contract.SetCondition(*conditions, t, status, reason, message, m.rt.Clock.Now())
	return before == nil || before.Message != message
}

// completeOptions adds two functions to the options of the apply engine: one that writes events about the item, and one
// that reports whether another owner of an object still exists. A function that the options already contain is kept.
func (m *ResourceManager) completeOptions(di *lsv1alpha1.DeployItem, o apply.Options) apply.Options {
	if o.Events == nil {
		o.Events = func(e apply.Event) {
			kind := corev1.EventTypeNormal
			if e.Reason == apply.ReasonMayRemain {
				kind = corev1.EventTypeWarning
			}
			m.recordEvent(di, newEventReference(e.Ref), kind, e.Reason, e.Ref.String()+": "+e.Message)
		}
	}
	if o.FindOwner == nil {
		o.FindOwner = m.findOwner
	}
	return o
}

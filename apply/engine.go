// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// Seen is what a watch knows about an object.
type Seen struct {
	UID      types.UID
	Key      ownership.Key
	Deleting bool
	// Item is the UID in the owner label. Empty if it is not known; the object is then read before it is deleted.
	Item types.UID
	// ResourceVersion may be empty.
	ResourceVersion string
}

// Lookup finds what a watch knows. false: nothing, so the object has to be asked for.
type Lookup interface {
	Seen(resource schema.GroupVersionResource, name types.NamespacedName) (Seen, bool)
}

// Options configure an Engine. The zero value works, but saves no calls and stores no inventory.
type Options struct {
	// Concurrency is how many objects are written at a time; 0 is 16. Objects of a stage are begun in the order in
	// which they were handed in: with 1 they are also written in that order.
	Concurrency int
	// Strategy is for objects that name none; empty is Apply.
	Strategy Strategy
	// Adoption is for objects that name none. Empty: AdoptNever for kinds that hold data, which are Namespace,
	// PersistentVolume, PersistentVolumeClaim and CustomResourceDefinition, and AdoptIfUnowned for all others.
	Adoption Adoption
	// RefuseUnowned makes AdoptNever an error that names who made the object. Off: the object gets the manifest's fields.
	RefuseUnowned bool
	// Checkpoint stores an inventory. It is called before a write that the stored inventory does not cover; its
	// error stops the call before that write. nil: nothing survives a crash.
	Checkpoint func(context.Context, Inventory) error
	// Seen saves calls for objects that did not change. nil: every object is written each time.
	Seen Lookup
	// Watch is told which resources a stage will write, and in which namespaces, before Seen is asked about them. A Session
	// calls it from all goroutines that call Session.Apply. nil: nobody is told.
	Watch func(ctx context.Context, resource schema.GroupVersionResource, namespaces []string)
	// Events is told what happened to objects. It is called by several goroutines. nil: nobody is told.
	Events func(Event)
	// MayHeal is asked before an object is put right that others changed although its manifest is the same. It reports
	// whether that may be done now; else the object is left as it is, and Report.Postponed names it. It is called by several
	// goroutines, and not with Force. If it is nil, everything is put right.
	MayHeal func(Drift) bool
	// Force writes every object, whatever Seen knows; objects with the strategies Recreate and OnDelete are read.
	Force bool
	// Applied is shared by the calls of one run: what it knows to be applied from an unchanged manifest is not written
	// again, with Force neither, unless it is gone or Seen shows that others changed it. What others change of an object
	// with a strategy that reads first is put right by the next run. If it is nil, each call is a run.
	Applied *Applied
	// KeepGoing begins a stage although objects of an earlier one failed, or are not finished. What needs those fails or
	// waits as well. Nothing is deleted unless all is well, as always. Off: the first stage that is not finished is the last.
	KeepGoing bool
	// Recreate deletes and creates an object when an immutable field changed. Off: such a change is an error.
	Recreate bool
	// PruneGroups order the deletions of Apply; nil: DefaultGroups.
	PruneGroups []Group
	// MaxInventory bounds the JSON of the inventory in bytes; 0 is 1 MiB. More is refused before the first write.
	MaxInventory int
	// Hide are texts that no error or event may contain, such as the credentials of the target.
	Hide []string
	// LandscaperManagers are the field managers of Landscaper's own deployers, whose fields are taken over
	// with their objects. nil: DefaultLandscaperManagers.
	LandscaperManagers []string
	// SharedKinds are kinds of which one object may belong to several items: each applies its own fields, and the last one
	// that goes deletes it. nil stands for DefaultSharedKinds, an empty list for none.
	SharedKinds []schema.GroupKind
	// OwnerExists reports whether a deploy item of the owner's own landscape exists, and is not being deleted: its objects
	// are a fault of the configuration then, which no retry mends. It must be fast. If it is nil, nothing is known.
	OwnerExists func(context.Context, ownership.Owner) bool
}

// DefaultSharedKinds are the kinds that items commonly share: Namespace.
func DefaultSharedKinds() []schema.GroupKind { return []schema.GroupKind{{Kind: "Namespace"}} }

const (
	defaultConcurrency  = 16
	defaultMaxInventory = 1 << 20
)

// Engine brings objects to one cluster. It holds no state: make one per item and call.
type Engine struct {
	client  client.Client
	mapper  meta.RESTMapper
	options Options
}

// New makes an engine for the cluster of c. The mapper tells which kinds the cluster knows; it should be shared by
// all engines of a cluster. The client must not read from a cache.
func New(c client.Client, mapper meta.RESTMapper, options Options) *Engine {
	options.Concurrency = cmp.Or(max(options.Concurrency, 0), defaultConcurrency)
	options.Strategy = cmp.Or(options.Strategy, Apply)
	options.MaxInventory = cmp.Or(options.MaxInventory, defaultMaxInventory)
	if options.PruneGroups == nil {
		options.PruneGroups = DefaultGroups()
	}
	if options.LandscaperManagers == nil {
		options.LandscaperManagers = DefaultLandscaperManagers()
	}
	if options.SharedKinds == nil {
		options.SharedKinds = DefaultSharedKinds()
	}
	return &Engine{client: c, mapper: mapper, options: options}
}

// Apply brings the desired objects to the cluster, in order, and then deletes those of the inventory that are no
// longer desired. It never waits: what is not finished is in the report, and the next call goes on there.
// The inventory that it returns must be stored also after an error. Errors are an *Error, Errors, that of
// Checkpoint, or that of an ended context.
func (e *Engine) Apply(ctx context.Context, owner ownership.Owner, desired []Desired, inv Inventory) (Inventory, Report, error) {
	objects, hide, err := e.prepare(ctx, owner, desired)
	if err != nil {
		return inv, Report{}, err
	}
	r := e.newRun(owner, inv, hide)
	if err := r.claim(ctx, objects); err != nil {
		return inv, Report{}, err
	}
	for _, stage := range stages(objects) {
		r.watch(ctx, stage)
		r.each(ctx, stage)
		if !r.complete(ctx) && !e.options.KeepGoing {
			return r.result(ctx)
		}
	}
	if r.complete(ctx) {
		r.prune(ctx, objects)
	}
	return r.result(ctx)
}

// Delete removes all objects of the inventory, group by group; nil groups: DefaultGroups. It never waits. It is
// over when the report is Done; then the inventory is empty but for the objects that no group names.
func (e *Engine) Delete(ctx context.Context, owner ownership.Owner, inv Inventory, groups []Group) (Inventory, Report, error) {
	if groups == nil {
		groups = DefaultGroups()
	}
	r := e.newRun(owner, inv, redact.New(shortestSecret, e.options.Hide...))
	r.remove(ctx, r.all(), groups)
	return r.result(ctx)
}

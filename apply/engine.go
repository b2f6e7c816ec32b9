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

// Seen describes an object as a watch shows it.
type Seen struct {
	UID      types.UID
	Key      ownership.Key
	Deleting bool
	// Item is the UID in the owner label. If it is empty because it is not known, the object is read before it is
	// deleted.
	Item types.UID
	// ResourceVersion may be empty.
	ResourceVersion string
}

// Lookup returns what a watch knows about an object. It returns false if no watch shows the object, which must then
// be read.
type Lookup interface {
	Seen(resource schema.GroupVersionResource, name types.NamespacedName) (Seen, bool)
}

// Options configure an Engine. The zero value works, but saves no calls and stores no inventory.
type Options struct {
	// Concurrency limits how many objects are written at a time. The default is 16. Objects of a stage are started in
	// the order in which they were handed in; with a concurrency of 1 they are also written in that order.
	Concurrency int
	// Strategy is for objects that name none. The default is Apply.
	Strategy Strategy
	// Adoption is for objects that name none. The default is AdoptNever for kinds that hold data, which are
	// Namespace, PersistentVolume, PersistentVolumeClaim and CustomResourceDefinition, and AdoptIfUnowned for all
	// others.
	Adoption Adoption
	// RefuseUnowned turns AdoptNever into an error that names the maker of the object. Without it, the object gets
	// the manifest's fields.
	RefuseUnowned bool
	// Checkpoint stores an inventory. It is called before a write that the stored inventory does not cover, and its
	// error stops the call before that write. If Checkpoint is nil, the inventory does not survive a crash.
	Checkpoint func(context.Context, Inventory) error
	// Seen saves calls for objects that did not change. If it is nil, every object is written each time.
	Seen Lookup
	// Watch announces which resources a stage will write, and in which namespaces, before Seen is asked about them. A
	// Session calls it from all goroutines that call Session.Apply. It may be nil.
	Watch func(ctx context.Context, resource schema.GroupVersionResource, namespaces []string)
	// Events receives what happened to objects. It is called from several goroutines. It may be nil.
	Events func(Event)
	// MayHeal is called before the engine corrects an object that others changed although its manifest is the same.
	// It reports whether that may happen now. Otherwise the object is left as it is, and Report.Postponed names it.
	// MayHeal is called from several goroutines, but not with Force. If it is nil, everything is corrected.
	MayHeal func(Drift) bool
	// Force writes every object, whatever Seen shows. Objects with the strategies Recreate and OnDelete are read.
	Force bool
	// Applied is shared by the calls of one run. An object that it records as applied from an unchanged manifest is
	// not written again, even with Force, unless the object is gone or Seen shows that others changed it. If others
	// change an object whose strategy reads first, the next run corrects it. If Applied is nil, each call is a run.
	Applied *Applied
	// KeepGoing starts a stage although objects of an earlier one failed or are not finished. Objects that need those
	// fail or wait as well. Nothing is deleted unless everything is finished, as always. Without KeepGoing, Apply
	// ends with the first unfinished stage.
	KeepGoing bool
	// Recreate deletes and creates an object when an immutable field changed. Without it, such a change is an error.
	Recreate bool
	// PruneGroups order the deletions of Apply. The default is DefaultGroups.
	PruneGroups []Group
	// MaxInventory limits the JSON of the inventory in bytes. The default is 1 MiB. A larger inventory is refused
	// before the first write.
	MaxInventory int
	// Hide lists texts that no error or event may contain, such as the credentials of the target.
	Hide []string
	// LandscaperManagers are the field managers of Landscaper's own deployers, whose fields are taken over with their
	// objects. The default is DefaultLandscaperManagers.
	LandscaperManagers []string
	// SharedKinds are the kinds whose objects may belong to several items. Each item applies its own fields, and the
	// last one to leave deletes the object. If SharedKinds is nil, DefaultSharedKinds is used; an empty list means
	// none.
	SharedKinds []schema.GroupKind
	// OwnerExists reports whether a deploy item of the owner's own landscape exists and is not being deleted. Wanting
	// an object of such an item is a fault of the configuration, which no retry corrects. OwnerExists must be fast.
	// If it is nil, nothing is known about other owners.
	OwnerExists func(context.Context, ownership.Owner) bool
}

// DefaultSharedKinds returns the kinds that items commonly share, which is only Namespace.
func DefaultSharedKinds() []schema.GroupKind { return []schema.GroupKind{{Kind: "Namespace"}} }

const (
	defaultConcurrency  = 16
	defaultMaxInventory = 1 << 20
)

// Engine writes objects to one cluster. It holds no state: make one per item and call.
type Engine struct {
	client  client.Client
	mapper  meta.RESTMapper
	options Options
}

// New returns an engine for the cluster of c. The mapper provides the kinds of the cluster; all engines of a cluster
// should share it. The client must not read from a cache.
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

// Apply writes the desired objects to the cluster, in order, and then deletes the objects of the inventory that are
// no longer desired. It never waits: the report lists what is unfinished, and the next call continues there. The
// returned inventory must be stored even after an error. The error is an *Error, Errors, the error of Checkpoint, or
// that of an ended context.
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

// Delete removes all objects of the inventory, group by group. If groups is nil, it uses DefaultGroups. It never
// waits. The deletion is finished when the report is Done; then the inventory contains only objects that no group
// names.
func (e *Engine) Delete(ctx context.Context, owner ownership.Owner, inv Inventory, groups []Group) (Inventory, Report, error) {
	if groups == nil {
		groups = DefaultGroups()
	}
	r := e.newRun(owner, inv, redact.New(shortestSecret, e.options.Hide...))
	r.remove(ctx, r.all(), groups)
	return r.result(ctx)
}

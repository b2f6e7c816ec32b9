// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/redact"
	"github.com/deployerkit/deployerkit/observe"
)

// Lookup finds objects that a watch has reported. If it returns false, no watch has reported the object, and the engine
// has to send a request for the object.
type Lookup interface {
	Get(resource schema.GroupVersionResource, name types.NamespacedName) (observe.State, bool)
}

// Options configure an Engine. The zero value is valid, but then the engine writes every object in each call and does
// not store the inventory.
type Options struct {
	// Concurrency limits how many objects are written at a time. The default is 16. Within a stage, the writes start in
	// the order in which the caller passed the objects. With a concurrency of 1, each write ends before the next one
	// starts.
	Concurrency int
	// Strategy is the strategy of objects that specify none. The default is Apply.
	Strategy Strategy
	// Adoption is used for objects that specify none. The default is AdoptionNever for the kinds whose objects contain
	// data: Namespace, PersistentVolume, PersistentVolumeClaim and CustomResourceDefinition. It is AdoptionIfUnowned for
	// all other kinds.
	Adoption Adoption
	// RefuseUnowned makes Apply return an error for an existing object without an owner if its Adoption is AdoptionNever.
	// The error names the creator of the object. Without RefuseUnowned, Apply writes the fields of the manifest to the
	// object.
	RefuseUnowned bool
	// Checkpoint stores an inventory. It is called before the engine writes an object that the stored inventory does
	// not contain. If it returns an error, the object is not written and the call ends. If Checkpoint is nil, a crash
	// during the call loses the new entries of the inventory.
	Checkpoint func(context.Context, Inventory) error
	// Watched finds the objects that watches have reported. Such an object needs no request if it is unchanged. If Watched
	// is nil, every object is written in each call.
	Watched Lookup
	// StartWatch is called for each resource that a stage will write. The stage writes objects of this resource in the
	// given namespaces. It is called before Watched.Get is called for these objects. A Session calls it from all
	// goroutines that call Session.Apply. It may be nil.
	StartWatch func(ctx context.Context, resource schema.GroupVersionResource, namespaces []string)
	// Events receives notable events about objects. Several goroutines may call Events at the same time. Events may be
	// nil.
	Events func(Event)
	// CanCorrect reports whether the engine may correct drift now. The engine calls it when other writers have changed an
	// object and the manifest is still the same. If CanCorrect returns false, the engine does not change the object, and
	// Report.Postponed lists the object. CanCorrect is called from several goroutines. It is not called if Force is set.
	// If CanCorrect is nil, the engine corrects every such object.
	CanCorrect func(DriftedObject) bool
	// Force makes the engine write every object, even if Watched shows that it is unchanged. Objects with the strategies
	// Recreate and OnDelete are always read, but written only if necessary.
	Force bool
	// RecreateFinished makes the engine create objects again that have finished their work and are gone (see
	// Entry.Finish).
	RecreateFinished bool
	// Applied records which objects were applied in the current run. A run is a series of calls that share one Applied.
	// If Applied is nil, each call is a run of its own.
	//
	// Within a run, the engine writes an object again, with or without Force, only in three cases: the manifest has
	// changed, the object is gone, or Watched shows that other writers changed the object. Objects with a strategy that
	// reads before it writes are an exception. If other writers change such an object during a run, the next run corrects
	// it.
	Applied *Applied
	// Recreate makes the engine delete an object and create it again if an immutable field changed in its manifest.
	// Without Recreate, such a change is an error.
	Recreate bool
	// PruneGroups determine the order in which Apply deletes objects. The default is DefaultDeletionGroups.
	PruneGroups []DeletionGroup
	// MaxInventory limits the size of the inventory, encoded as JSON and including Inventory.Former, in bytes. The
	// default is 1 MiB. If the inventory would become larger, the call returns an error before the first write.
	MaxInventory int
	// Hide lists texts that are removed from all errors and events, such as the credentials of the target.
	Hide []string
	// LandscaperManagers lists the field managers of Landscaper's own deployers. When an item takes over an object from
	// one of these deployers, it also takes over the fields of these managers. The default is the list of the
	// deployers' program names.
	LandscaperManagers []string
	// LandscaperLabel is the label that Landscaper's own deployer of this type adds to objects. Its value is the name of
	// the deploy item. Objects with this label can be taken over from that deployer. The default is the label of
	// Landscaper's manifest deployer.
	LandscaperLabel string
	// SharedKinds lists the kinds whose objects may belong to several items. Each item applies its own fields, and the
	// last owner deletes the object. If SharedKinds is nil, DefaultSharedKinds is used. An empty list means that no
	// kinds are shared.
	SharedKinds []schema.GroupKind
	// FindOwner reports whether the deploy item to which an object belongs still exists. It is called only if another
	// item wants the object, and only for items in the same Landscaper cluster as the engine's own item. An object whose
	// owner is gone is taken over, subject to its Adoption. FindOwner must return OwnerGone only if this is proved. If
	// FindOwner is nil, it is not known whether an owner exists. FindOwner is called from several goroutines.
	FindOwner func(context.Context, ownership.Owner) OwnerState
	// SkipUnreadable decides what happens to an object that is to be deleted if the API server rejects the credentials
	// or forbids reading the object, and the inventory does not contain a UID, so that the object may not exist. If it
	// returns true, the object is removed from the inventory, and an event reports that it may remain. If it returns
	// false, the object counts as waiting. If SkipUnreadable is nil, such an object is an error. SkipUnreadable is
	// called from several goroutines.
	SkipUnreadable func(Ref) bool
}

// OwnerState describes whether the deploy item to which an object belongs still exists.
type OwnerState = object.OwnerState

const (
	// OwnerUnknown means that it is not known whether the item exists. The item keeps its objects, and the error about the
	// object has the class ClassRetry.
	OwnerUnknown = object.OwnerUnknown
	// OwnerExists means that the item exists and is not being deleted. The error about the object has the class
	// ClassPermanent.
	OwnerExists = object.OwnerExists
	// OwnerDeleting means that the item is being deleted. It will soon release or delete the object.
	OwnerDeleting = object.OwnerDeleting
	// OwnerGone means that the item does not exist any more.
	OwnerGone = object.OwnerGone
)

// DefaultSharedKinds returns the kinds that items commonly share. It contains only Namespace.
func DefaultSharedKinds() []schema.GroupKind { return []schema.GroupKind{{Kind: "Namespace"}} }

// landscaperLabel is the label that Landscaper's manifest deployer adds to objects.
const landscaperLabel = "manifest.deployer.landscaper.gardener.cloud/deployitem"

// Engine writes the objects of one item to one cluster. Create a new Engine for each call, because the Options are
// valid for one call only.
type Engine struct {
	client  client.Client
	mapper  meta.RESTMapper
	options Options
}

// New returns an Engine for the cluster that c accesses. The mapper provides the kinds of the cluster. All engines of a
// cluster should use the same mapper. The client must not read from a cache.
//
// If the mapper has the method HasStatusSubresource(schema.GroupVersionKind) bool, like the mapper of targets.Client,
// the status in a manifest is not sent for the kinds for which it returns true.
func New(c client.Client, mapper meta.RESTMapper, options Options) *Engine {
	options.Concurrency = cmp.Or(max(options.Concurrency, 0), 16)
	options.Strategy = cmp.Or(options.Strategy, StrategyApply)
	options.MaxInventory = cmp.Or(options.MaxInventory, 1<<20)
	if options.PruneGroups == nil {
		options.PruneGroups = DefaultDeletionGroups()
	}
	options.LandscaperLabel = cmp.Or(options.LandscaperLabel, landscaperLabel)
	if options.LandscaperManagers == nil {
		options.LandscaperManagers = []string{"manifest-deployer-controller", "helm-deployer-controller", "landscaper-controller"}
	}
	if options.SharedKinds == nil {
		options.SharedKinds = DefaultSharedKinds()
	}
	return &Engine{client: c, mapper: mapper, options: options}
}

func (e *Engine) begin(owner ownership.Owner, inv Inventory) *run {
	hide := redact.New(minSecretLength, e.options.Hide...)
	return &run{
		options: &e.options, rules: newRules(&e.options, owner), cluster: e.newCluster(), hide: hide,
		kinds: &kinds{mapper: e.mapper, defined: map[schema.GroupVersionKind]kind{}}, objects: newTracker(inv), results: newResults(hide), namespaces: &namespaceReasons{},
	}
}

// newRules returns the rules for the objects of an item.
func newRules(o *Options, owner ownership.Owner) *decide.Rules {
	return &decide.Rules{
		Owner: owner, Force: o.Force, RecreateFinished: o.RecreateFinished, Recreate: o.Recreate, MustAskToCorrect: o.CanCorrect != nil, CanFindOwners: o.FindOwner != nil,
		SharedKinds: o.SharedKinds, LandscaperLabel: o.LandscaperLabel, LandscaperManagers: o.LandscaperManagers,
	}
}

func (e *Engine) newCluster() cluster {
	return cluster{client: e.client, prover: absence.NewProver(e.client, e.mapper)}
}

// Apply writes the desired objects to the cluster, in order. An object that failed or is unfinished holds back only the
// objects that depend on it. When all desired objects are finished without errors, Apply deletes the objects of the
// inventory that are no longer desired. It deletes such a webhook configuration earlier if the webhook refuses an
// object, or if the API server cannot call the webhook. It never waits: the report lists what is unfinished, and the
// next call continues from there. The caller must store the returned inventory, even after an error. The error is an
// *Error, Errors, the error of Checkpoint, or the error of an ended context.
func (e *Engine) Apply(ctx context.Context, owner ownership.Owner, desired []Desired, inv Inventory) (Inventory, Report, error) {
	r := e.begin(owner, inv)
	objects, err := r.prepare(ctx, desired, false)
	if err != nil {
		return inv, Report{}, err
	}
	if err := r.objects.claim(ctx, objects, &e.options); err != nil {
		return inv, Report{}, err
	}
	for _, stage := range splitIntoStages(objects) {
		due := r.removeBlocked(ctx, stage)
		r.watch(ctx, due)
		forEach(ctx, e.options.Concurrency, due, func(_ int, o *desiredObject) {
			_, err := r.apply(ctx, o)
			r.results.addError(err)
		})
	}
	if !r.results.isComplete(ctx) {
		r.removeRefusingWebhooks(ctx)
	} else if orphans := r.listOrphans(); len(orphans) > 0 {
		r.removeAll(ctx, orphans, e.options.PruneGroups)
	}
	return r.result(ctx)
}

// Delete deletes all objects of the inventory, group by group. If groups is nil, it uses DefaultDeletionGroups. It
// never waits. The deletion is finished when report.IsDone returns true. Objects that belong to none of the groups are
// not deleted and stay in the inventory.
func (e *Engine) Delete(ctx context.Context, owner ownership.Owner, inv Inventory, groups []DeletionGroup) (Inventory, Report, error) {
	if groups == nil {
		groups = DefaultDeletionGroups()
	}
	r := e.begin(owner, inv)
	r.removeAll(ctx, r.objects.all(), groups)
	return r.result(ctx)
}

// AfterDeployment sends PatchAfterDeployment to each object that was written since the patch was last sent to it. Call
// it when the objects are ready. The patches are sent under a separate field manager. The returned inventory records
// the patched state, so that later calls do not treat the patches as changes by other writers. As with Apply, the
// caller must store the inventory even after an error.
func (e *Engine) AfterDeployment(ctx context.Context, owner ownership.Owner, desired []Desired, inv Inventory) (Inventory, Report, error) {
	r := e.begin(owner, inv)
	objects, err := r.prepare(ctx, desired, false)
	if err != nil {
		return inv, Report{}, err
	}
	due := slices.DeleteFunc(objects, func(o *desiredObject) bool {
		s := r.objects.get(o.ref)
		return o.isUntouched() || s.Gone || s.Finish == FinishGone || !s.PatchDue || s.UID == "" || s.Hash != o.hash
	})
	forEach(ctx, e.options.Concurrency, due, func(_ int, o *desiredObject) {
		end := r.processObject(ctx, o.ref, decide.Facts{Manifest: o.manifest(r.options)}, decide.PatchAfterDeployment)
		r.results.addError(r.recordResult(ctx, end))
	})
	return r.result(ctx)
}

// ListOwned returns those objects of an inventory whose changes a watch can detect. Use it in a process that has just
// started and has no Report yet. It leaves out objects whose kind the cluster no longer serves, and sends requests only
// to determine kinds.
func (e *Engine) ListOwned(inv Inventory) []observe.BaselineObject {
	r := e.begin(ownership.Owner{}, inv)
	return r.objects.listOwned(r.kinds)
}

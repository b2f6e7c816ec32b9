// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/targets"
)

// ConditionUnknownObjects is the type of a condition that reports copies: objects in the target that carry the label
// and the annotations of the item, but that neither the item nor an earlier item with the same name has written. The
// message names the objects. The library leaves such objects alone.
const ConditionUnknownObjects lsv1alpha1.ConditionType = "UnknownObjects"

// These constants limit the work on unknown objects.
const (
	maxUnknownObjects  = 100              // the objects that one run reads
	maxForeignObjects  = 1000             // the objects whose verdict is stored per item
	unknownRunInterval = 30 * time.Second // the minimum time between two runs that unknown objects request
)

// foreignObjects contains the objects with the marks of an item that do not belong to it.
type foreignObjects struct {
	mu      sync.Mutex
	objects map[types.UID]foreignObject
	nextRun time.Time // the earliest time of the next run that an unknown object requests
}

// foreignObject is one of these objects.
type foreignObject struct {
	version    string // the version for which this was found out
	name       string // for users
	unreadable bool   // the target does not allow finding out whether the object belongs to the item
}

// add records that an object does not belong to the item, or that it cannot be read.
func (s *foreignObjects) add(uid types.UID, one foreignObject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil || len(s.objects) >= maxForeignObjects {
		s.objects = map[types.UID]foreignObject{}
	}
	s.objects[uid] = one
}

// forget removes an object that belongs to the item.
func (s *foreignObjects) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, uid)
}

// forgetUnreadable removes the objects that could not be read.
func (s *foreignObjects) forgetUnreadable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(_ types.UID, one foreignObject) bool { return one.unreadable })
}

// removeExcept removes all other objects.
func (s *foreignObjects) removeExcept(present map[types.UID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(uid types.UID, _ foreignObject) bool { return !present[uid] })
}

// listVersions returns the version of each object.
func (s *foreignObjects) listVersions() map[types.UID]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[types.UID]string, len(s.objects))
	for uid, one := range s.objects {
		out[uid] = one.version
	}
	return out
}

// listNames returns the sorted names of the objects.
func (s *foreignObjects) listNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.objects))
	for _, one := range s.objects {
		out = append(out, one.name)
	}
	slices.Sort(out)
	return out
}

// getNextRun returns the time of the next run that an unknown object may request.
func (s *foreignObjects) getNextRun(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.nextRun
	if at.Before(now) {
		at = now
		s.nextRun = now.Add(unknownRunInterval)
	}
	return at
}

// handleUnknownObject triggers a run of an item for which a watch has reported an object with its marks that its
// inventory does not contain. Watchers call unknown, so it must not block.
func (s *clusters) handleUnknownObject(uid types.UID) {
	if it := s.manager.items.find(uid); it != nil {
		it.triggers.Request(it.foreign.getNextRun(s.manager.rt.Clock.Now()))
	}
}

// addUnknownObjects adds objects to the inventory that carry the marks of the item, or of an earlier item with the same
// name, and that the inventory does not contain. Such objects exist if the target or the Landscaper cluster was
// restored from a backup, if the item was created again under its name, or if an earlier version of the library removed
// them from the inventory. Objects that are not desired are then deleted like all others. addUnknownObjects considers
// only objects that a watch has reported and that the item has written according to managedFields. It reads each of
// them once, and an object that it may not read again in each job. The condition ConditionUnknownObjects names the
// other ones. If an object cannot be read for another reason, addUnknownObjects returns an error if the item is being
// deleted. Otherwise, another run tries again. The function `complete` may set further fields of the new entries. It
// may be nil.
func (r *Run) addUnknownObjects(ctx context.Context, complete func(*apply.Entry, metav1.Object)) error {
	if r.Cluster == nil {
		return nil
	}
	if !r.isBackground {
		r.item.foreign.forgetUnreadable()
	}
	if r.Item.DeletionTimestamp != nil {
		r.watchKinds(ctx)
	}
	if !r.setKnownObjects(false) {
		return nil
	}
	inventory, found := r.Inventory, []string{}
	inventory.Entries = slices.Clip(inventory.Entries)
	for _, one := range r.Cluster.watcher.ListUnknown(r.Owner, maxUnknownObjects) {
		entry, ours, err := r.readMarkedObject(ctx, one, complete)
		switch {
		case err != nil && (ctx.Err() != nil || r.Item.DeletionTimestamp != nil):
			return err
		case err != nil: // Observe requests another run, because the object is still unknown
			r.RecordEvent(nil, corev1.EventTypeWarning, "UnknownObjects", oneLine(err.Error()))
		case ours && !hasObject(inventory.Entries, entry):
			inventory.Entries, found = append(inventory.Entries, entry), append(found, entry.Ref().String())
		}
	}
	if len(found) == 0 {
		return nil
	}
	r.RecordEvent(nil, corev1.EventTypeWarning, "ObjectsFound", oneLine(fmt.Sprintf("%d objects that the item has written were missing in its inventory and were added: %s",
		len(found), joinFirst(found))))
	if err := r.SetInventory(inventory); err != nil {
		return err
	}
	return deployerlib.Checkpoint(ctx)
}

// readMarkedObject reads an object with the marks of the item, and returns its entry for the inventory. If the object
// does not belong to the item, readMarkedObject records this.
func (r *Run) readMarkedObject(ctx context.Context, one observe.Marked, complete func(*apply.Entry, metav1.Object)) (entry apply.Entry, ours bool, err error) {
	gvk, err := r.Cluster.RESTMapper().KindFor(one.Object.Resource)
	if err != nil {
		return entry, false, fmt.Errorf("find the kind of the unknown object %s: %w", one.Object, err)
	}
	held, release := targets.ReserveMemory(ctx)
	defer release()
	live, err := r.Cluster.metadata.Resource(one.Object.Resource).Namespace(one.Object.Namespace).Get(held, one.Object.Name, metav1.GetOptions{})
	ref := apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: one.Object.Namespace, Name: one.Object.Name}
	err = r.Cluster.addReason(ctx, gvk, err)
	switch meaning := absence.ClassifyError(absence.Object{Kind: gvk.GroupKind(), Name: ref.Name}, err); {
	case meaning == absence.MeaningNotAllowed:
		r.item.foreign.add(one.UID, foreignObject{one.ResourceVersion, ref.String() + " (reading it is forbidden)", true})
		return entry, false, nil
	case meaning.IsProved():
		return entry, false, nil
	case err != nil:
		return entry, false, fmt.Errorf("read the unknown object %s: %w", one.Object, err)
	}
	if live.UID != one.UID || live.DeletionTimestamp != nil {
		return entry, false, nil
	}
	owner := r.Owner
	if marked, found := ownership.GetOwner(live); found && marked.IsSameItem(owner) {
		owner.UID = marked.UID // an earlier item with the same name cannot exist any more
	}
	if owner.UID != r.Owner.UID && len(r.Inventory.Entries) == 0 && !r.isBackground {
		return entry, false, nil // the first job takes over what it wants; the next run finds the rest
	}
	if entry, ours = NewEntry(owner, gvk, live); !ours || !owner.HasWritten(live) {
		r.item.foreign.add(one.UID, foreignObject{version: one.ResourceVersion, name: ref.String()})
		return entry, false, nil
	}
	if complete != nil {
		complete(&entry, live)
	}
	r.item.foreign.forget(one.UID)
	return entry, true, nil
}

// watchKinds watches the kinds of the objects in the inventory, so that objects of these kinds are found even if the
// process has just started.
func (r *Run) watchKinds(ctx context.Context) {
	watched, _ := listResources(r.Cluster, r.Inventory.Entries)
	for resource, namespaces := range watched {
		_, _ = r.Cluster.watcher.Watch(ctx, resource, namespaces...) // without a watch, only the inventory is deleted
	}
}

// hasObject reports whether entries contain the object of another entry.
func hasObject(entries []apply.Entry, one apply.Entry) bool {
	return slices.ContainsFunc(entries, func(e apply.Entry) bool {
		return e.UID != "" && e.UID == one.UID || e.Ref().GVK().GroupKind() == one.Ref().GVK().GroupKind() && e.Namespace == one.Namespace && e.Name == one.Name
	})
}

// setKnownObjects sets the objects that the item knows in its watches. It reports whether they have reported other
// objects of the item. If ends is true, the run will create no more objects.
func (r *Run) setKnownObjects(ends bool) bool {
	before := r.knownObjects
	r.knownObjects = make(map[types.UID]bool, len(r.Inventory.Entries))
	for _, entry := range r.Inventory.Entries {
		if entry.UID != "" {
			r.knownObjects[entry.UID] = true
		}
	}
	r.item.foreign.removeExcept(r.Cluster.watcher.FindMarked(r.Owner, r.item.foreign.listVersions()))
	ignored := r.item.foreign.listVersions()
	for uid := range before {
		if !r.knownObjects[uid] {
			ignored[uid] = "" // this run has removed the object
		}
	}
	return r.Cluster.watcher.SetInventory(r.Owner, slices.Collect(maps.Keys(r.knownObjects)), ignored, ends)
}

// setUnknownObjects sets the condition ConditionUnknownObjects, and writes an event when it changes.
func (r *Run) setUnknownObjects() {
	message := ""
	if names := r.item.foreign.listNames(); len(names) > 0 {
		message = oneLine("these objects carry the label and the annotations of this item, which did not write them, and are left alone: " + joinFirst(names))
	}
	if r.Manager.setCondition(r.Item, ConditionUnknownObjects, lsv1alpha1.ConditionTrue, "NotWritten", message) && message != "" {
		r.RecordEvent(nil, corev1.EventTypeWarning, "UnknownObjects", message)
	}
}

// joinFirst joins the first names of a list.
func joinFirst(names []string) string {
	text := strings.Join(names[:min(len(names), maxReported)], ", ")
	if more := len(names) - maxReported; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

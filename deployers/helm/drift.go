// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/managed"
)

// driftDetector compares the objects of an item with their state after the last write.
type driftDetector struct {
	*managed.Run

	clock  clock.Clock
	config DriftConfig
	memory *memory
}

// newDriftDetector returns a driftDetector for the item.
func (r *run) newDriftDetector() *driftDetector {
	return &driftDetector{Run: r.Managed, clock: r.deployer.manager.GetRuntime().Clock, config: r.config.Extension.Drift, memory: r.memory}
}

// tolerate prepares objects for the apply engine: it removes ignored fields that another client owns, and determines
// the objects whose changes the engine must not correct.
func (d *driftDetector) tolerate(ctx context.Context, desired []apply.Desired) ([]apply.Desired, error) {
	d.memory.tolerated = map[apply.Ref]bool{}
	out := slices.Clone(desired)
	for i := range out {
		pointers, all := d.config.ignored(out[i].Object)
		ref := refOf(d.Cluster, out[i].Object)
		if all {
			d.memory.tolerated[ref] = true
			continue
		}
		if len(pointers) == 0 || !d.isInventoried(ref) {
			continue
		}
		var err error
		if out[i].Object, err = d.withoutForeignFields(ctx, ref, out[i].Object, pointers); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// canCorrect returns a function that reports whether the apply engine may correct an object. The function is nil if the
// engine may correct all objects.
func (d *driftDetector) canCorrect() func(apply.DriftedObject) bool {
	tolerated := d.memory.tolerated
	if len(tolerated) == 0 {
		return nil
	}
	return func(drift apply.DriftedObject) bool { return !tolerated[versionless(drift.Ref)] }
}

// isInventoried reports whether the item has created an object.
func (d *driftDetector) isInventoried(ref apply.Ref) bool {
	return slices.ContainsFunc(d.Inventory.Entries, func(entry apply.Entry) bool { return entry.UID != "" && versionless(entry.Ref()) == ref })
}

// withoutForeignFields returns a copy of an object without the fields at the given pointers that another client owns. If
// the item still owns such a field although its value differs, the copy contains the value in the target.
func (d *driftDetector) withoutForeignFields(ctx context.Context, ref apply.Ref, object *unstructured.Unstructured, pointers []string) (*unstructured.Unstructured, error) {
	ref.APIVersion = object.GetAPIVersion()
	live, err := d.Cluster.Read(ctx, ref)
	if err != nil || live == nil {
		return object, err
	}
	out := object.DeepCopy()
	for _, pointer := range pointers {
		field := findField(live.Object, pointer)
		wanted := findField(out.Object, pointer)
		if field == nil || wanted == nil || !wanted.isSet() || !field.isSet() {
			continue
		}
		if ownership.IsFieldOwner(live, d.Owner.FieldManager(), field.path) {
			wanted.set(field.get())
		} else {
			wanted.remove()
		}
	}
	return out, nil
}

// isUnchanged reports whether the objects of the item are known to be as the last deployment left them. If the objects
// are not watched yet, it opens the watches.
func (d *driftDetector) isUnchanged(ctx context.Context, engine apply.Options) (bool, error) {
	if d.IsResyncForced() || d.HasLostInventory() {
		return false, nil
	}
	if d.entriesUnchanged() {
		return true, nil
	}
	c := d.Cluster
	if err := d.WatchInventory(ctx, c.NewEngine(d.CompleteOptions(c, engine)).ListOwned(d.Inventory)); err != nil {
		return false, err
	}
	return d.entriesUnchanged(), nil
}

// entriesUnchanged reports whether the watches show all objects of the inventory in the state after the item's last
// write.
func (d *driftDetector) entriesUnchanged() bool {
	c := d.Cluster
	return !slices.ContainsFunc(d.Inventory.Entries, func(entry apply.Entry) bool {
		if entry.Finish.IsDone() {
			return false
		}
		resource, err := c.FindResource(entry.Ref())
		if err != nil || entry.UID == "" || entry.Fingerprint == "" || entry.Deleting || entry.Pending {
			return true
		}
		seen, found := c.Watcher().Get(resource, entry.Ref().Key())
		if found && seen.UID == entry.UID && d.memory.tolerated[versionless(entry.Ref())] {
			return false
		}
		return !found || seen.UID != entry.UID || seen.Fingerprint != entry.Fingerprint
	})
}

// report sets or removes the condition ConditionDrift, and writes an event if it has changed.
func (d *driftDetector) report(ctx context.Context) {
	conditions := &d.Item.Status.Conditions
	var names []string
	if d.config.Mode == DriftWarn {
		for _, entry := range d.Inventory.Entries {
			if !d.memory.tolerated[versionless(entry.Ref())] && d.hasDrifted(ctx, entry) {
				names = append(names, entry.Ref().String())
			}
		}
	}
	before := contract.GetCondition(*conditions, ConditionDrift)
	if len(names) == 0 {
		*conditions = contract.RemoveCondition(*conditions, ConditionDrift)
		return
	}
	message := contract.OneLine("another client has changed or deleted objects, which are not corrected because deployerkit.drift.mode is Warn: "+shorten(names), maxText)
	if before != nil && before.Message == message {
		return
	}
	*conditions = contract.SetCondition(*conditions, ConditionDrift, lsv1alpha1.ConditionTrue, "Changed", message, d.clock.Now())
	d.RecordEvent(nil, corev1.EventTypeWarning, "Drift", message)
}

// hasDrifted reports whether another client has changed or deleted an object, according to a watch.
func (d *driftDetector) hasDrifted(ctx context.Context, entry apply.Entry) bool {
	if entry.Finish.IsDone() || entry.UID == "" || entry.Fingerprint == "" || entry.Pending {
		return false
	}
	c := d.Cluster
	resource, err := c.FindResource(entry.Ref())
	if err != nil {
		return false
	}
	seen, found := c.Watcher().Get(resource, entry.Ref().Key())
	if !found { // the object was deleted, or the watch is interrupted
		live, err := c.Read(ctx, entry.Ref())
		return err == nil && live == nil
	}
	return seen.UID != entry.UID || seen.Fingerprint != entry.Fingerprint
}

// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// ConditionFormerClusters names the clusters that the item has left but in which it still has objects, with the
// reason. It exists only as long as there are such clusters.
const ConditionFormerClusters lsv1alpha1.ConditionType = "FormerClusters"

// ReleaseAnnotation on a deploy item, with the value "true", gives up the objects in clusters that the item has left.
// They stay there, and a deletion of the item does not wait for them.
const ReleaseAnnotation = "deployerkit.dev/release-former-clusters"

// These are the times between two attempts to clean up a former cluster.
const (
	minCleanUp = 2 * time.Second
	maxCleanUp = 10 * time.Minute
)

// maxFormer limits how many clusters the condition names.
const maxFormer = 5

// arrive records which cluster the item is in now.
func (r *Run) arrive(ctx context.Context, target string) error {
	uid, err := r.Cluster.UID(ctx)
	if err != nil {
		return connectError("spec.target", err)
	}
	from := r.Inventory.Cluster
	change := relocate(r.Inventory, apply.Cluster{UID: uid, Target: target})
	r.Inventory = change.inventory
	if !change.moved {
		return nil
	}
	r.item.beginAnew()
	r.clusters.leave(r.Item.UID, r.Cluster)
	if len(change.released) > 0 {
		r.release(*from, len(change.released), "the Target leads to another cluster now")
	}
	return r.Note(r.Inventory)
}

// release reports in an event that objects are given up.
func (r *Run) release(from apply.Cluster, objects int, reason string) {
	r.Event(nil, corev1.EventTypeWarning, "Released", fmt.Sprintf("%d objects in the cluster %s of Target %s are not the item's any more: %s",
		objects, from.UID, from.Target, reason))
}

// CleanUp deletes the objects in clusters that the item has left, as far as that is possible now. Call it when the
// item is deployed in its own cluster. The condition FormerClusters names what is left, and a later run tries again.
// o contains the options of the engine, and groups the order of the deletion, which has a default. CleanUp reports
// whether something changed. It returns the errors of Begin's note.
func (r *Run) CleanUp(ctx context.Context, o apply.Options, groups []apply.Group) (changed bool, err error) {
	if len(r.Inventory.Former) == 0 {
		return r.tellFormer(nil), nil
	}
	var left []apply.Inventory
	var reasons []string
	before := 0
	for _, former := range r.Inventory.Former {
		before += len(former.Entries)
		rest, reason := r.cleanUp(ctx, former, o, groups)
		if len(rest) > 0 {
			left = append(left, apply.Inventory{Cluster: former.Cluster, Entries: rest})
			reasons = append(reasons, fmt.Sprintf("Target %s: %d objects: %s", former.Cluster.Target, len(rest), reason))
		}
	}
	after := 0
	for _, former := range left {
		after += len(former.Entries)
	}
	changed = r.tellFormer(reasons) || after < before
	if len(left) > 0 {
		r.item.wake(r.rt.Clock.Now().Add(r.item.nextCleanUp(after < before)))
	}
	r.Inventory.Former = left
	return changed, r.Note(r.Inventory)
}

// Abandon gives up the objects in clusters that the item has left. It returns the errors of Begin's note.
func (r *Run) Abandon(reason string) error {
	for _, former := range r.Inventory.Former {
		r.release(*former.Cluster, len(former.Entries), reason)
	}
	r.tellFormer(nil)
	r.Inventory.Former = nil
	return r.Note(r.Inventory)
}

// LeaveFirst calls Leave if Options.CleanUpFirst is set, and does nothing otherwise. Call it before the first write.
func (r *Run) LeaveFirst(ctx context.Context, o apply.Options, groups []apply.Group) error {
	if !r.options.CleanUpFirst {
		return nil
	}
	return r.Leave(ctx, o, groups)
}

// Leave calls CleanUp for callers that continue only when nothing is left, such as a deletion. It returns a
// [deployerlib.WaitFor] if something is left, and otherwise the errors of CleanUp.
func (r *Run) Leave(ctx context.Context, o apply.Options, groups []apply.Group) error {
	if _, err := r.CleanUp(ctx, o, groups); err != nil || len(r.Inventory.Former) == 0 {
		return err
	}
	condition := contract.GetCondition(r.Item.Status.Conditions, ConditionFormerClusters)
	return deployerlib.WaitFor(condition.Message, r.item.cleanUpPause())
}

// cleanUp deletes the objects in one former cluster. It returns what is left, with the reason.
func (r *Run) cleanUp(ctx context.Context, former apply.Inventory, o apply.Options, groups []apply.Group) (left []apply.Entry, reason string) {
	if r.Item.Annotations[ReleaseAnnotation] == "true" {
		r.release(*former.Cluster, len(former.Entries), "the annotation "+ReleaseAnnotation+" says so")
		return nil, ""
	}
	to, err := r.Target(ctx, "former cluster", former.Cluster.Target)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return former.Entries, "the Target does not exist any more"
		}
		return former.Entries, oneLine(err.Error())
	}
	uid, err := to.UID(ctx)
	switch {
	case err != nil:
		return former.Entries, oneLine(err.Error())
	case uid == "":
		return former.Entries, "the cluster does not say which one it is: its namespace kube-system cannot be read"
	case uid != former.Cluster.UID:
		r.release(*former.Cluster, len(former.Entries), "the Target leads to another cluster now")
		return nil, ""
	}
	return r.deleteFrom(ctx, to, former, o, groups)
}

// deleteFrom deletes what may be deleted now from a former cluster.
func (r *Run) deleteFrom(ctx context.Context, to *Cluster, former apply.Inventory, o apply.Options, groups []apply.Group) (left []apply.Entry, reason string) {
	o.Events, o.OwnerExists = r.tell, r.ownerExists
	engine := apply.New(to.Client, to.RESTMapper(), o)
	left = former.Entries
	for len(left) > 0 {
		now := removable(left)
		rest, report, err := engine.Delete(ctx, r.Owner, apply.Inventory{Entries: now}, groups)
		deleted := len(now) - len(rest.Entries)
		left = replaced(left, now, rest.Entries)
		switch {
		case err != nil:
			return left, oneLine(err.Error())
		case !report.Done():
			return left, oneLine(report.Reason())
		case deleted == 0: // no group names them
			return nil, ""
		}
	}
	return nil, ""
}

// replaced returns entries after some of them were replaced by those that are left.
func replaced(entries, some, left []apply.Entry) []apply.Entry {
	gone := map[apply.Ref]bool{}
	for _, entry := range some {
		gone[entry.Ref()] = true
	}
	out := slices.DeleteFunc(slices.Clone(entries), func(entry apply.Entry) bool { return gone[entry.Ref()] })
	return append(out, left...)
}

// defaultInventory is the default of apply.Options.MaxInventory.
const defaultInventory = 1 << 20

// roomFor returns how large an inventory may become in addition to those of former clusters.
func roomFor(bound int, former []apply.Inventory) int {
	raw, err := json.Marshal(former)
	if err != nil {
		return 1 // cannot happen because it was read from JSON
	}
	return max(1, cmp.Or(bound, defaultInventory)-len(raw))
}

// tellFormer shows in a condition where objects are left. It reports whether the condition changed.
func (r *Run) tellFormer(reasons []string) (changed bool) {
	conditions := &r.Item.Status.Conditions
	before := contract.GetCondition(*conditions, ConditionFormerClusters)
	if len(reasons) == 0 {
		*conditions = contract.RemoveCondition(*conditions, ConditionFormerClusters)
		return before != nil
	}
	if more := len(reasons) - maxFormer; more > 0 {
		reasons = append(slices.Clone(reasons[:maxFormer]), fmt.Sprintf("and %d more clusters", more))
	}
	message := oneLine("objects of the item are left in clusters that it has left: " + strings.Join(reasons, "; "))
	*conditions = contract.SetCondition(*conditions, ConditionFormerClusters, lsv1alpha1.ConditionTrue, "ObjectsLeft", message, r.rt.Clock.Now())
	return before == nil || before.Message != message
}

// nextCleanUp returns how long to wait before the next attempt. The time doubles as long as nothing is deleted.
func (i *item) nextCleanUp(progress bool) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if progress {
		i.cleanUp = 0
	}
	i.cleanUp = min(max(2*i.cleanUp, minCleanUp), maxCleanUp)
	return i.cleanUp
}

// cleanUpPause returns the last result of nextCleanUp.
func (i *item) cleanUpPause() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return cmp.Or(i.cleanUp, minCleanUp)
}

// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// ConditionFormerClusters is the type of a condition of an item that has moved to another cluster. The item has this
// condition while its former clusters still contain some of its objects. The message names the clusters and explains
// why the objects remain.
const ConditionFormerClusters lsv1alpha1.ConditionType = "FormerClusters"

// ReleaseAnnotation is an annotation of a deploy item that has moved to another cluster. If its value is "true", the
// objects in the former clusters no longer belong to the item. They are not deleted, and the deletion of the item does
// not wait for them.
const ReleaseAnnotation = "deployerkit.dev/release-former-clusters"

// These constants are the minimum and maximum time between two attempts to clean up a former cluster.
const (
	minCleanUp = 2 * time.Second
	maxCleanUp = 10 * time.Minute
)

// maxFormer is the maximum number of clusters that the condition FormerClusters names.
const maxFormer = 5

// releasedByTarget is the reason why objects in a former cluster no longer belong to the item: the cluster cannot be
// reached any more.
const releasedByTarget = "the Target now refers to another cluster"

// release writes an event which reports that objects in a former cluster no longer belong to the item.
func (r *Run) release(from apply.Cluster, objects int, reason string) {
	r.Event(nil, corev1.EventTypeWarning, "Released", fmt.Sprintf("%d objects in the cluster %s of Target %s no longer belong to the item: %s",
		objects, from.UID, from.Target, reason))
}

// CleanUp deletes the item's objects in former clusters, as far as this is possible now. A former cluster is one to
// which the item was deployed before it moved to its current cluster. Call CleanUp after the item has been deployed to
// its current cluster. If objects remain, the condition FormerClusters names their clusters, and a later run continues.
//
// The parameter `groups` determines the order of the deletion. If it is nil, the default order is used. CleanUp reports
// whether the inventory or the condition changed. It returns the error of the function `note` that was passed to Begin.
func (r *Run) CleanUp(ctx context.Context, o apply.Options, groups []apply.Group) (changed bool, err error) {
	if len(r.Inventory.Former) == 0 {
		return r.Keeper.setCondition(r.Item, ConditionFormerClusters, "", "", ""), nil
	}
	clean := cleaner{owner: r.Owner, open: r.Target, options: r.Keeper.reporting(r.Item, o), groups: groups}
	var left []apply.Inventory
	var reasons []string
	progress := false
	for _, former := range r.Inventory.Former {
		rest := leftover{released: "the annotation " + ReleaseAnnotation + " requests this"}
		if r.Item.Annotations[ReleaseAnnotation] != "true" {
			rest = clean.one(ctx, former)
		}
		progress = progress || len(rest.entries) < len(former.Entries)
		switch {
		case rest.released != "":
			r.release(*former.Cluster, len(former.Entries), rest.released)
		case len(rest.entries) > 0:
			left = append(left, apply.Inventory{Cluster: former.Cluster, Entries: rest.entries})
			reasons = append(reasons, fmt.Sprintf("Target %s: %d objects: %s", former.Cluster.Target, len(rest.entries), rest.reason))
		}
	}
	changed = r.Keeper.setCondition(r.Item, ConditionFormerClusters, lsv1alpha1.ConditionTrue, "ObjectsLeft", objectsLeft(reasons)) || progress
	if len(left) > 0 {
		r.item.queue.wake(r.Keeper.rt.Clock.Now().Add(r.item.nextCleanUp(progress)))
	}
	r.Inventory.Former = left
	return changed, r.Note(r.Inventory)
}

// objectsLeft returns a message that names the clusters in which objects remain, or "" if there are none.
func objectsLeft(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	if more := len(reasons) - maxFormer; more > 0 {
		reasons = append(slices.Clone(reasons[:maxFormer]), fmt.Sprintf("and %d more clusters", more))
	}
	return oneLine("objects of the item remain in clusters that the item has left: " + strings.Join(reasons, "; "))
}

// Abandon removes the item's objects in former clusters from the inventory without deleting the objects. It writes an
// event with the reason for each of these clusters, and removes the condition FormerClusters. It returns the error of the function `note` that was passed to Begin.
func (r *Run) Abandon(reason string) error {
	for _, former := range r.Inventory.Former {
		r.release(*former.Cluster, len(former.Entries), reason)
	}
	r.Keeper.setCondition(r.Item, ConditionFormerClusters, "", "", "")
	r.Inventory.Former = nil
	return r.Note(r.Inventory)
}

// LeaveFirst calls Leave if Options.CleanUpFirst is set, and does nothing otherwise. Call LeaveFirst before the first
// write.
func (r *Run) LeaveFirst(ctx context.Context, o apply.Options, groups []apply.Group) error {
	if !r.Keeper.options.CleanUpFirst {
		return nil
	}
	return r.Leave(ctx, o, groups)
}

// Leave calls CleanUp, and returns a [deployerlib.WaitFor] if objects remain. Call Leave before a step that must not
// begin until all objects in former clusters are gone, such as the deletion of the item.
func (r *Run) Leave(ctx context.Context, o apply.Options, groups []apply.Group) error {
	if _, err := r.CleanUp(ctx, o, groups); err != nil || len(r.Inventory.Former) == 0 {
		return err
	}
	condition := contract.GetCondition(r.Item.Status.Conditions, ConditionFormerClusters)
	return deployerlib.WaitFor(condition.Message, r.item.cleanUpPause())
}

// cleaner deletes the objects of an item in former clusters.
type cleaner struct {
	owner   ownership.Owner
	open    func(ctx context.Context, path, name string) (*Cluster, error)
	options apply.Options
	groups  []apply.Group
}

// leftover describes the objects that remain in a former cluster after an attempt to delete them.
type leftover struct {
	entries  []apply.Entry
	reason   string // the reason why the entries remain
	released string // the reason why the objects no longer belong to the item; empty if they still belong to it
}

// one deletes the objects in one former cluster. If the Target of that cluster now refers to another cluster, the
// objects cannot be deleted, and the field `released` of the result is set.
func (c cleaner) one(ctx context.Context, former apply.Inventory) leftover {
	to, err := c.open(ctx, "former cluster", former.Cluster.Target)
	switch {
	case apierrors.IsNotFound(err):
		return leftover{entries: former.Entries, reason: "the Target does not exist any more"}
	case err != nil:
		return leftover{entries: former.Entries, reason: oneLine(err.Error())}
	}
	uid, err := to.UID(ctx)
	switch {
	case err != nil:
		return leftover{entries: former.Entries, reason: oneLine(err.Error())}
	case uid == "":
		return leftover{entries: former.Entries, reason: "the cluster cannot be identified, because its namespace kube-system cannot be read"}
	case uid != former.Cluster.UID:
		return leftover{released: releasedByTarget}
	}
	return c.delete(ctx, to.Engine(c.options), former.Entries)
}

// delete deletes the objects on which no other remaining object depends.
func (c cleaner) delete(ctx context.Context, engine *apply.Engine, left []apply.Entry) leftover {
	for len(left) > 0 {
		now, later := removable(left)
		rest, report, err := engine.Delete(ctx, c.owner, apply.Inventory{Entries: now}, c.groups)
		left = slices.Concat(later, rest.Entries)
		switch {
		case err != nil:
			return leftover{entries: left, reason: oneLine(err.Error())}
		case !report.Done():
			return leftover{entries: left, reason: oneLine(report.Reason())}
		case len(rest.Entries) == len(now): // no deletion group contains the remaining objects
			return leftover{}
		}
	}
	return leftover{}
}

// nextCleanUp returns the time until the next attempt to clean up former clusters. The time doubles after each attempt
// that deletes nothing.
func (i *item) nextCleanUp(progress bool) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if progress {
		i.cleanUp = 0
	}
	i.cleanUp = min(max(2*i.cleanUp, minCleanUp), maxCleanUp)
	return i.cleanUp
}

// cleanUpPause returns the result of the last call of nextCleanUp.
func (i *item) cleanUpPause() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return cmp.Or(i.cleanUp, minCleanUp)
}

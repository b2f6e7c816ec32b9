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

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/notfound"
)

// ConditionFormerClusters is the type of a condition of an item that has moved to another cluster. The item has this
// condition while its former clusters still contain some of its objects. The message names the clusters and explains
// why the objects remain.
const ConditionFormerClusters lsv1alpha1.ConditionType = "FormerClusters"

// ReleaseAnnotation is an annotation of a deploy item that has moved to another cluster. If its value is "true", the
// objects in the former clusters no longer belong to the item. They are not deleted, and the deletion of the item does
// not wait for them.
const ReleaseAnnotation = "deployerkit.dev/release-former-clusters"

// releases reports whether the item has the ReleaseAnnotation.
func releases(di *lsv1alpha1.DeployItem) bool { return di.Annotations[ReleaseAnnotation] == "true" }

// These constants are the minimum and maximum time between two attempts to clean up a former cluster.
const (
	minCleanUp = 2 * time.Second
	maxCleanUp = 10 * time.Minute
)

// maxFormer is the maximum number of clusters that the condition FormerClusters names.
const maxFormer = 5

// maxNamedEntries is the maximum number of objects that a message names for each cluster.
const maxNamedEntries = 5

// releasedByTarget is the reason why objects in a former cluster no longer belong to the item: the cluster cannot be
// reached any more.
const releasedByTarget = "the Target now refers to another cluster"

// release writes an event which reports that objects in a former cluster no longer belong to the item.
func (r *Run) release(from apply.Cluster, objects int, reason string) {
	r.Event(nil, corev1.EventTypeWarning, "Released", oneLine(fmt.Sprintf("%d objects in %s no longer belong to the item: %s", objects, from, reason)))
}

// CleanUp deletes the item's objects in former clusters, as far as this is possible now. A former cluster is one to
// which the item was deployed before it moved to its current cluster. Call CleanUp after the item has been deployed to
// its current cluster. If objects remain, the condition FormerClusters names their clusters, and a later run continues.
//
// A former cluster that may be the current cluster is not cleaned up unless the item is being deleted. The condition and
// an event name its objects. If the current cluster turns out to be the former cluster, CleanUp merges their inventories.
//
// The parameter `groups` determines the order of the deletion. If it is nil, the default order is used. CleanUp reports
// whether the inventory or the condition changed. It returns the error of the function `note` that was passed to Begin.
func (r *Run) CleanUp(ctx context.Context, o apply.Options, groups []apply.Group) (changed bool, err error) {
	before := len(r.Inventory.Former)
	merged := r.verifyFormer(ctx)
	if before == 0 {
		return r.Keeper.setCondition(r.Item, ConditionFormerClusters, "", "", ""), nil
	}
	clean := cleaner{owner: r.Owner, open: r.Target, options: r.Keeper.reporting(r.Item, o), groups: groups}
	clean.options.LeaveUnreadable = r.leavesUnreadable
	result := remains{progress: merged || len(r.Inventory.Former) < before}
	for _, former := range r.Inventory.Former {
		result.add(former, r.cleanUpOne(ctx, clean, former), r.release)
	}
	shown := r.Keeper.setCondition(r.Item, ConditionFormerClusters, lsv1alpha1.ConditionTrue, "ObjectsLeft", result.message())
	if shown && slices.ContainsFunc(result.left, isUnverified) {
		r.Event(nil, corev1.EventTypeWarning, "ClusterUnknown", result.message())
	}
	if len(result.left) > 0 || merged {
		r.item.triggers.Request(r.Keeper.rt.Clock.Now().Add(r.item.nextCleanUp(result.progress)))
	}
	r.Inventory.Former = result.left
	return shown || result.progress, r.Note(r.Inventory)
}

// verifyFormer finds out whether unverified former clusters are the current cluster, and adapts the inventory. It reports
// whether the inventory contains additional objects that the item no longer needs.
func (r *Run) verifyFormer(ctx context.Context) (merged bool) {
	if r.Inventory.Cluster == nil || !slices.ContainsFunc(r.Inventory.Former, isUnverified) {
		return false
	}
	inv := recognizeFormer(r.Inventory)
	for i, former := range inv.Former {
		if !isUnverified(former) || former.Cluster.UID != "" || inv.Cluster.UID == "" {
			continue
		}
		to, err := r.Target(ctx, "former cluster", former.Cluster.Target)
		if err != nil || to.server != former.Cluster.Server {
			continue
		}
		if uid, err := to.uid(ctx, true); err == nil && uid != "" {
			known := *former.Cluster
			known.UID, inv.Former[i].Cluster = uid, &known
		}
	}
	r.Inventory = relocate(inv, *inv.Cluster).inventory
	return len(r.Inventory.Entries) > len(inv.Entries)
}

// cleanUpOne deletes the objects in one former cluster, unless the annotation releases them or the cluster is unverified.
// If the item is being deleted, it no longer matters whether the cluster is the current cluster, so its objects are
// deleted. If no Target leads to an unverified cluster any more, the deletion ends after some time.
func (r *Run) cleanUpOne(ctx context.Context, clean cleaner, former apply.Inventory) leftover {
	if releases(r.Item) {
		return leftover{released: "the annotation " + ReleaseAnnotation + " requests this"}
	}
	if !isUnverified(former) {
		return clean.one(ctx, former)
	}
	if r.Item.DeletionTimestamp == nil {
		return leftover{entries: former.Entries, reason: nameEntries(former.Entries) + ": " + r.whyUnverified(former)}
	}
	rest := clean.one(ctx, former)
	if rest.unreachable && r.item.waited("former cluster", r.Keeper.rt.Clock.Now()) >= unreadableGrace {
		return leftover{released: rest.reason + ", so these objects may remain: " + nameEntries(rest.entries)}
	}
	return rest
}

// whyUnverified explains why it is not known whether the item still uses a former cluster, and what to do.
func (r *Run) whyUnverified(former apply.Inventory) string {
	target := former.Cluster.Target
	if r.Inventory.Cluster == nil || r.Inventory.Cluster.UID == "" {
		target = "the item"
		if r.Item.Spec.Target != nil {
			target = r.Item.Spec.Target.Name
		}
	}
	return "it is not known whether this is still the cluster of the item; permit the Target " + target +
		" to get the namespace kube-system, or set the annotation " + ReleaseAnnotation
}

// nameEntries returns text that names the first objects, and the number of the others.
func nameEntries(entries []apply.Entry) string {
	names := []string{}
	for _, entry := range entries[:min(len(entries), maxNamedEntries)] {
		names = append(names, entry.Ref().String())
	}
	if more := len(entries) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// remains contains the result of CleanUp.
type remains struct {
	left     []apply.Inventory
	reasons  []string // the reasons why objects remain, one for each cluster
	progress bool
}

// add adds the result for a former cluster. It calls `release` if the objects no longer belong to the item.
func (s *remains) add(former apply.Inventory, rest leftover, release func(from apply.Cluster, objects int, reason string)) {
	s.progress = s.progress || len(rest.entries) < len(former.Entries)
	switch {
	case rest.released != "":
		release(*former.Cluster, len(former.Entries), rest.released)
	case len(rest.entries) > 0:
		s.left = append(s.left, apply.Inventory{Cluster: former.Cluster, Entries: rest.entries})
		s.reasons = append(s.reasons, fmt.Sprintf("Target %s: %d objects: %s", former.Cluster.Target, len(rest.entries), rest.reason))
	}
}

// message returns a message that names the clusters in which objects remain, or "" if there are none.
func (s *remains) message() string {
	if len(s.reasons) == 0 {
		return ""
	}
	verb, reasons := "remain", s.reasons
	if !slices.ContainsFunc(s.left, func(former apply.Inventory) bool { return !isUnverified(former) }) {
		verb = "may remain"
	}
	if more := len(reasons) - maxFormer; more > 0 {
		reasons = append(slices.Clone(reasons[:maxFormer]), fmt.Sprintf("and %d more clusters", more))
	}
	return oneLine("objects of the item " + verb + " in clusters that the item has left: " + strings.Join(reasons, "; "))
}

// Abandon removes the item's objects in former clusters from the inventory without deleting the objects. It writes an
// event with the reason for each of these clusters, and removes the condition FormerClusters. It returns the error of
// the function `note` that was passed to Begin.
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
	objects := len(r.Inventory.Entries)
	_, err := r.CleanUp(ctx, o, groups)
	switch {
	case err != nil:
		return err
	case len(r.Inventory.Entries) > objects:
		return deployerlib.WaitFor("the former cluster of the item is its current cluster and contains more objects", r.item.cleanUpPause())
	case len(r.Inventory.Former) == 0:
		return nil
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
	// unreachable means that no Target leads to the cluster, as far as it can be identified.
	unreachable bool
}

// one deletes the objects in one former cluster. The cluster is identified by its UID or, if the UID is not known, by its
// Target and API server. If the Target of that cluster now refers to another cluster, the objects cannot be deleted, and
// the field `released` of the result is set.
func (c cleaner) one(ctx context.Context, former apply.Inventory) leftover {
	to, err := c.open(ctx, "former cluster", former.Cluster.Target)
	switch {
	case notfound.IsProof(err):
		return leftover{entries: former.Entries, reason: "the Target does not exist any more", unreachable: true}
	case err != nil:
		return leftover{entries: former.Entries, reason: oneLine(err.Error())}
	}
	uid, err := to.UID(ctx)
	switch {
	case err != nil:
		return leftover{entries: former.Entries, reason: oneLine(err.Error())}
	case uid != "" && former.Cluster.UID != "" && uid != former.Cluster.UID:
		return leftover{released: releasedByTarget}
	case (uid == "" || former.Cluster.UID == "") && (to.server == "" || to.server != former.Cluster.Server):
		reason := "the cluster cannot be identified, because its namespace kube-system cannot be read"
		return leftover{entries: former.Entries, reason: reason, unreachable: true}
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

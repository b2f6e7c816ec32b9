// SPDX-License-Identifier: Apache-2.0

package managed

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

// hasReleaseAnnotation reports whether the item has the ReleaseAnnotation.
func hasReleaseAnnotation(di *lsv1alpha1.DeployItem) bool {
	return di.Annotations[ReleaseAnnotation] == "true"
}

// These constants are the minimum and maximum time between two attempts to clean up a former cluster.
const (
	minCleanUpDelay = 2 * time.Second
	maxCleanUpDelay = 10 * time.Minute
)

// maxFormer is the maximum number of clusters that the condition FormerClusters names.
const maxFormer = 5

// maxNamedEntries is the maximum number of objects that a message names for each cluster.
const maxNamedEntries = 5

// releasedByTarget is the reason why objects in a former cluster no longer belong to the item: the cluster cannot be
// reached any more.
const releasedByTarget = "the Target now refers to another cluster"

// recordReleaseEvent writes an event which reports that objects in a former cluster no longer belong to the item.
func (r *Run) recordReleaseEvent(from apply.ClusterID, objects int, reason string) {
	r.RecordEvent(nil, corev1.EventTypeWarning, "Released", oneLine(fmt.Sprintf("%d objects in %s no longer belong to the item: %s", objects, from, reason)))
}

// TryCleanUpFormer deletes the item's objects in former clusters, as far as this is possible now. A former cluster is
// one to which the item was deployed before it moved to its current cluster. Call TryCleanUpFormer after the item has
// been deployed to its current cluster. If objects remain, the condition FormerClusters names their clusters, and a
// later run continues.
//
// A former cluster that may be the current cluster is not cleaned up unless the item is being deleted. The condition
// and an event name its objects. If the current cluster turns out to be the former cluster, TryCleanUpFormer merges
// their inventories.
//
// The objects are deleted in the order of groups, or in the default order if groups is nil. TryCleanUpFormer reports
// whether the inventory or the condition changed. It returns the error of the function `note` that was passed to Begin.
func (r *Run) TryCleanUpFormer(ctx context.Context, o apply.Options, groups []apply.DeletionGroup) (changed bool, err error) {
	before := len(r.Inventory.Former)
	merged := r.verifyFormer(ctx)
	if before == 0 {
		return r.Manager.setCondition(r.Item, ConditionFormerClusters, "", "", ""), nil
	}
	clean := clusterCleaner{owner: r.Owner, open: r.OpenTarget, options: r.Manager.completeOptions(r.Item, o), groups: groups}
	clean.options.SkipUnreadable = r.shouldSkipUnreadable
	result := cleanUpResult{progress: merged || len(r.Inventory.Former) < before}
	for _, former := range r.Inventory.Former {
		result.add(former, r.cleanUpCluster(ctx, clean, former), r.recordReleaseEvent)
	}
	shown := r.Manager.setCondition(r.Item, ConditionFormerClusters, lsv1alpha1.ConditionTrue, "ObjectsLeft", result.formatMessage())
	if shown && slices.ContainsFunc(result.remaining, isUnverified) {
		r.RecordEvent(nil, corev1.EventTypeWarning, "ClusterUnknown", result.formatMessage())
	}
	if len(result.remaining) > 0 || merged {
		r.item.triggers.Request(r.Manager.rt.Clock.Now().Add(r.item.nextCleanUpDelay(result.progress)))
	}
	r.Inventory.Former = result.remaining
	return shown || result.progress, r.SetInventory(r.Inventory)
}

// verifyFormer finds out whether unverified former clusters are the current cluster, and adapts the inventory. It
// reports whether the inventory contains additional objects that the item no longer needs.
func (r *Run) verifyFormer(ctx context.Context) (merged bool) {
	if r.Inventory.Cluster == nil || !slices.ContainsFunc(r.Inventory.Former, isUnverified) {
		return false
	}
	inv := matchFormer(r.Inventory)
	for i, former := range inv.Former {
		if !isUnverified(former) || former.Cluster.UID != "" || inv.Cluster.UID == "" {
			continue
		}
		to, err := r.OpenTarget(ctx, "former cluster", former.Cluster.Target)
		if err != nil || to.server != former.Cluster.Server {
			continue
		}
		if uid, err := to.uid(ctx, true); err == nil && uid != "" {
			known := *former.Cluster
			known.UID, inv.Former[i].Cluster = uid, &known
		}
	}
	r.Inventory = computeRelocation(inv, *inv.Cluster).inventory
	return len(r.Inventory.Entries) > len(inv.Entries)
}

// cleanUpCluster deletes the objects in one former cluster, unless the annotation releases them or the cluster is
// unverified. If the item is being deleted, it no longer matters whether the cluster is the current cluster, so its
// objects are deleted. If no Target leads to an unverified cluster any more, the deletion ends after some time.
func (r *Run) cleanUpCluster(ctx context.Context, clean clusterCleaner, former apply.Inventory) remainingObjects {
	if hasReleaseAnnotation(r.Item) {
		return remainingObjects{released: "the annotation " + ReleaseAnnotation + " requests this"}
	}
	if !isUnverified(former) {
		return clean.cleanUp(ctx, former)
	}
	if r.Item.DeletionTimestamp == nil {
		return remainingObjects{entries: former.Entries, reason: formatEntries(former.Entries) + ": " + r.describeUnverified(former)}
	}
	rest := clean.cleanUp(ctx, former)
	if rest.unreachable && r.item.getWaitTime("former cluster", r.Manager.rt.Clock.Now()) >= unreadableGrace {
		return remainingObjects{released: rest.reason + ", so these objects may remain: " + formatEntries(rest.entries)}
	}
	return rest
}

// describeUnverified explains why it is not known whether the item still uses a former cluster, and what to do.
func (r *Run) describeUnverified(former apply.Inventory) string {
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

// formatEntries returns text that names the first objects, and the number of the others.
func formatEntries(entries []apply.Entry) string {
	names := []string{}
	for _, entry := range entries[:min(len(entries), maxNamedEntries)] {
		names = append(names, entry.Ref().String())
	}
	if more := len(entries) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// cleanUpResult contains the result of TryCleanUpFormer.
type cleanUpResult struct {
	remaining []apply.Inventory
	reasons   []string // the reasons why objects remain, one for each cluster
	progress  bool
}

// add adds the result for a former cluster. It calls `release` if the objects no longer belong to the item.
func (s *cleanUpResult) add(former apply.Inventory, rest remainingObjects, release func(from apply.ClusterID, objects int, reason string)) {
	s.progress = s.progress || len(rest.entries) < len(former.Entries)
	switch {
	case rest.released != "":
		release(*former.Cluster, len(former.Entries), rest.released)
	case len(rest.entries) > 0:
		s.remaining = append(s.remaining, apply.Inventory{Cluster: former.Cluster, Entries: rest.entries})
		s.reasons = append(s.reasons, fmt.Sprintf("Target %s: %d objects: %s", former.Cluster.Target, len(rest.entries), rest.reason))
	}
}

// formatMessage returns a message that names the clusters in which objects remain, or "" if there are none.
func (s *cleanUpResult) formatMessage() string {
	if len(s.reasons) == 0 {
		return ""
	}
	verb, reasons := "remain", s.reasons
	if !slices.ContainsFunc(s.remaining, func(former apply.Inventory) bool { return !isUnverified(former) }) {
		verb = "may remain"
	}
	if more := len(reasons) - maxFormer; more > 0 {
		reasons = append(slices.Clone(reasons[:maxFormer]), fmt.Sprintf("and %d more clusters", more))
	}
	return oneLine("objects of the item " + verb + " in clusters that the item has left: " + strings.Join(reasons, "; "))
}

// ReleaseFormer removes the item's objects in former clusters from the inventory without deleting the objects. It
// writes an event with the reason for each of these clusters, and removes the condition FormerClusters. It returns the
// error of the function `note` that was passed to Begin.
func (r *Run) ReleaseFormer(reason string) error {
	for _, former := range r.Inventory.Former {
		r.recordReleaseEvent(*former.Cluster, len(former.Entries), reason)
	}
	r.Manager.setCondition(r.Item, ConditionFormerClusters, "", "", "")
	r.Inventory.Former = nil
	return r.SetInventory(r.Inventory)
}

// CleanUpFormerFirst calls CleanUpFormerClusters if Options.CleanUpFirst is set, and does nothing otherwise. Call
// CleanUpFormerFirst before the first write.
func (r *Run) CleanUpFormerFirst(ctx context.Context, o apply.Options, groups []apply.DeletionGroup) error {
	if !r.Manager.options.CleanUpFirst {
		return nil
	}
	return r.CleanUpFormerClusters(ctx, o, groups)
}

// CleanUpFormerClusters calls TryCleanUpFormer, and returns a [deployerlib.WaitFor] if objects remain. Call
// CleanUpFormerClusters before a step that must not begin until all objects in former clusters are gone, such as the
// deletion of the item.
func (r *Run) CleanUpFormerClusters(ctx context.Context, o apply.Options, groups []apply.DeletionGroup) error {
	objects := len(r.Inventory.Entries)
	_, err := r.TryCleanUpFormer(ctx, o, groups)
	switch {
	case err != nil:
		return err
	case len(r.Inventory.Entries) > objects:
		return deployerlib.WaitFor("the former cluster of the item is its current cluster and contains more objects", r.item.lastCleanUpDelay())
	case len(r.Inventory.Former) == 0:
		return nil
	}
	condition := contract.GetCondition(r.Item.Status.Conditions, ConditionFormerClusters)
	return deployerlib.WaitFor(condition.Message, r.item.lastCleanUpDelay())
}

// clusterCleaner deletes the objects of an item in former clusters.
type clusterCleaner struct {
	owner   ownership.Owner
	open    func(ctx context.Context, path, name string) (*Cluster, error)
	options apply.Options
	groups  []apply.DeletionGroup
}

// remainingObjects describes the objects that remain in a former cluster after an attempt to delete them.
type remainingObjects struct {
	entries  []apply.Entry
	reason   string // the reason why the entries remain
	released string // the reason why the objects no longer belong to the item; empty if they still belong to it
	// unreachable means that no Target leads to the cluster, as far as it can be identified.
	unreachable bool
}

// cleanUp deletes the objects in one former cluster. The cluster is identified by its UID or, if the UID is not known,
// by its Target and API server. If the Target of that cluster now refers to another cluster, the objects cannot be
// deleted, and the field `released` of the result is set.
func (c clusterCleaner) cleanUp(ctx context.Context, former apply.Inventory) remainingObjects {
	to, err := c.open(ctx, "former cluster", former.Cluster.Target)
	switch {
	case notfound.IsProof(err):
		return remainingObjects{entries: former.Entries, reason: "the Target does not exist any more", unreachable: true}
	case err != nil:
		return remainingObjects{entries: former.Entries, reason: oneLine(err.Error())}
	}
	uid, err := to.UID(ctx)
	switch {
	case err != nil:
		return remainingObjects{entries: former.Entries, reason: oneLine(err.Error())}
	case uid != "" && former.Cluster.UID != "" && uid != former.Cluster.UID:
		return remainingObjects{released: releasedByTarget}
	case (uid == "" || former.Cluster.UID == "") && (to.server == "" || to.server != former.Cluster.Server):
		reason := "the cluster cannot be identified, because its namespace kube-system cannot be read"
		return remainingObjects{entries: former.Entries, reason: reason, unreachable: true}
	}
	return c.delete(ctx, to.NewEngine(c.options), former.Entries)
}

// delete deletes the objects on which no other remaining object depends.
func (c clusterCleaner) delete(ctx context.Context, engine *apply.Engine, left []apply.Entry) remainingObjects {
	for len(left) > 0 {
		now, later := splitRemovable(left)
		rest, report, err := engine.Delete(ctx, c.owner, apply.Inventory{Entries: now}, c.groups)
		left = slices.Concat(later, rest.Entries)
		switch {
		case err != nil:
			return remainingObjects{entries: left, reason: oneLine(err.Error())}
		case !report.IsDone():
			return remainingObjects{entries: left, reason: oneLine(report.Reason())}
		case len(rest.Entries) == len(now): // no deletion group contains the remaining objects
			return remainingObjects{}
		}
	}
	return remainingObjects{}
}

// nextCleanUpDelay returns the time until the next attempt to clean up former clusters. The time doubles after each
// attempt that deletes nothing.
func (i *item) nextCleanUpDelay(progress bool) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if progress {
		i.cleanUpDelay = 0
	}
	i.cleanUpDelay = min(max(2*i.cleanUpDelay, minCleanUpDelay), maxCleanUpDelay)
	return i.cleanUpDelay
}

// lastCleanUpDelay returns the result of the last call of nextCleanUpDelay.
func (i *item) lastCleanUpDelay() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return cmp.Or(i.cleanUpDelay, minCleanUpDelay)
}

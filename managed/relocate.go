// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
)

// clusterRelation is the result of a comparison of two clusters.
type clusterRelation string

const (
	relationSame  clusterRelation = "same"
	relationOther clusterRelation = "another"
	// relationUnknown means that the clusters may be the same or not.
	relationUnknown clusterRelation = "unknown"
)

// compareClusters compares two clusters by their UIDs. If a UID is not known, they are the same if they have the same
// Target and the same API server, and otherwise unknown. An inventory of an earlier version does not contain the API
// server, which then counts as the same.
func compareClusters(a, b apply.ClusterID) clusterRelation {
	switch {
	case a.UID != "" && b.UID != "" && a.UID != b.UID:
		return relationOther
	case a.UID != "" && b.UID != "":
		return relationSame
	case a.Target == b.Target && (a.Server == b.Server || a.Server == "" || b.Server == ""):
		return relationSame
	}
	return relationUnknown
}

// isUnverified reports whether the cluster of an inventory may be the current cluster of its item.
func isUnverified(former apply.Inventory) bool {
	return former.Cluster != nil && former.Cluster.Unverified
}

// getServerHash returns the value of apply.ClusterID.Server for a target. It returns "" if the API server is not known.
func getServerHash(target client.Reader) string {
	switch t := target.(type) {
	case *Cluster:
		return t.server
	case interface{ Config() *rest.Config }:
		if id, err := newServerID(t.Config()); err == nil {
			return strings.TrimPrefix(string(id), serverPrefix)[:serverHashLength]
		}
	}
	return ""
}

// serverHashLength is the length of apply.ClusterID.Server. Inventories contain it once for each cluster.
const serverHashLength = 16

// relocation is the inventory of an item after its current cluster has been compared with the previous one.
type relocation struct {
	inventory apply.Inventory
	// moved means that the item was deployed to another cluster before, or possibly to another cluster.
	moved bool
	// released contains the entries of the previous cluster if that cluster can no longer be reached, because its
	// Target now refers to the current cluster.
	released []apply.Entry
}

// resolveRelocation identifies at, the current cluster of an item as far as it is known, and adapts the inventory to it
// (see computeRelocation). It reads objects of the inventory only if the UID of the current or the previous cluster is
// not known, and their Targets or API servers differ.
func resolveRelocation(ctx context.Context, target client.Reader, inv apply.Inventory, at apply.ClusterID) (relocation, error) {
	inv = matchFormer(inv)
	if inv.Cluster == nil || compareClusters(*inv.Cluster, at) != relationUnknown {
		return computeRelocation(inv, at), nil
	}
	inv.Former = slices.Clone(inv.Former)
	all := []*apply.Inventory{&inv}
	for i := range inv.Former {
		all = append(all, &inv.Former[i])
	}
	reads := maxProofReads
	for _, one := range all {
		if one.Cluster == nil || compareClusters(*one.Cluster, at) != relationUnknown {
			continue
		}
		found, err := containsObject(ctx, target, one.Entries, &reads)
		if err != nil {
			return relocation{}, err
		}
		if found {
			at.UID = cmp.Or(at.UID, one.Cluster.UID)
			one.Cluster = &apply.ClusterID{UID: at.UID, Target: at.Target, Server: at.Server}
			break
		}
	}
	return computeRelocation(inv, at), nil
}

// maxProofReads is the maximum number of objects that are read to identify a cluster.
const maxProofReads = 5

// containsObject reports whether a cluster contains one of the objects of an inventory, with the same UID. It reads at
// most as many objects as `reads` allows, and decreases `reads` by their number. It returns an error if the cluster
// does not answer. An object that is gone or may not be read proves nothing.
func containsObject(ctx context.Context, target client.Reader, entries []apply.Entry, reads *int) (bool, error) {
	for _, entry := range entries {
		if entry.UID == "" || entry.Deleting || entry.Finish == apply.FinishGone || *reads == 0 {
			continue
		}
		*reads--
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(entry.Ref().GVK())
		err := target.Get(ctx, entry.Ref().Key(), live)
		meaning := absence.ClassifyError(absence.Object{Kind: entry.Ref().GVK().GroupKind(), Name: entry.Name}, err)
		switch {
		case err == nil && live.GetUID() == entry.UID:
			return true, nil
		case err != nil && meaning == absence.MeaningUnrelated:
			return false, fmt.Errorf("identify the target by its objects: %w", err)
		}
	}
	return false, nil
}

// matchFormer compares the objects of the current cluster with those of unverified former clusters. If an object has
// the same UID in both inventories, the clusters are the same, and the result contains the current cluster in both
// inventories. The function computeRelocation then merges the inventories.
func matchFormer(inv apply.Inventory) apply.Inventory {
	if inv.Cluster == nil || !slices.ContainsFunc(inv.Former, isUnverified) {
		return inv
	}
	current := map[apply.Ref]types.UID{}
	for _, entry := range inv.Entries {
		current[withoutVersion(entry)] = entry.UID
	}
	inv.Former = slices.Clone(inv.Former)
	for i, former := range inv.Former {
		same := func(e apply.Entry) bool { return e.UID != "" && current[withoutVersion(e)] == e.UID }
		if isUnverified(former) && slices.ContainsFunc(former.Entries, same) {
			known := *inv.Cluster
			known.UID = cmp.Or(known.UID, former.Cluster.UID)
			inv.Cluster, inv.Former[i].Cluster = &known, &known
		}
	}
	return inv
}

// withoutVersion returns the reference to an object without the version of its API.
func withoutVersion(entry apply.Entry) apply.Ref {
	ref := entry.Ref()
	ref.APIVersion = ref.GVK().Group
	return ref
}

// computeRelocation adapts an inventory to at, the current cluster of the item. If the item was deployed to another
// cluster before, computeRelocation moves the entries of that cluster to Inventory.Former. If that cluster can no
// longer be reached, because its Target now refers to the current cluster, computeRelocation moves the entries to the
// field `released` of the result instead. If the item returns to a former cluster, computeRelocation moves the entries
// of that cluster back from Inventory.Former.
//
// A former cluster that may be the current cluster is unverified. The current inventory then also contains its entries,
// but as unwritten ones: if the objects are in the current cluster, the item adopts them.
func computeRelocation(inv apply.Inventory, at apply.ClusterID) relocation {
	from := inv.Cluster
	same := from == nil || compareClusters(*from, at) == relationSame
	if from != nil && same {
		at.UID, at.Server = cmp.Or(at.UID, from.UID), cmp.Or(at.Server, from.Server)
	}
	out := relocation{inventory: apply.Inventory{Cluster: &at, Empty: inv.Empty}, moved: from != nil && !same}
	former := slices.Clone(inv.Former)
	switch {
	case same:
		out.inventory.Entries = inv.Entries
	case len(inv.Entries) == 0:
	case from.Target == at.Target && compareClusters(*from, at) == relationOther:
		out.released = inv.Entries
	default:
		former = append(former, apply.Inventory{Cluster: from, Entries: inv.Entries})
	}
	for _, one := range former {
		out.add(one, at)
	}
	return out
}

// add adds the inventory of a former cluster. The current cluster is at.
func (r *relocation) add(former apply.Inventory, at apply.ClusterID) {
	if former.Cluster == nil {
		r.inventory.Former = append(r.inventory.Former, former)
		return
	}
	found := compareClusters(*former.Cluster, at)
	if found == relationSame {
		r.inventory.Entries = mergeEntries(r.inventory.Entries, former.Entries)
		return
	}
	if found == relationUnknown && (r.moved || !former.Cluster.Unverified) {
		r.inventory.Entries = mergeEntries(r.inventory.Entries, markUnwritten(former.Entries))
	}
	cluster := *former.Cluster
	cluster.Unverified = found == relationUnknown
	former.Cluster = &cluster
	r.inventory.Former = append(r.inventory.Former, former)
}

// markUnwritten returns copies of entries for a cluster that may not contain the objects.
func markUnwritten(entries []apply.Entry) []apply.Entry {
	out := make([]apply.Entry, len(entries))
	for i, entry := range entries {
		out[i] = entry.ToUnwritten()
	}
	return out
}

// mergeEntries returns the entries of two inventories of the same cluster. If both contain an object, the result
// contains the first entry that has a UID.
func mergeEntries(a, b []apply.Entry) []apply.Entry {
	out := slices.Clone(a)
	places := map[apply.Ref]int{}
	for i, entry := range out {
		places[withoutVersion(entry)] = i
	}
	for _, entry := range b {
		i, found := places[withoutVersion(entry)]
		switch {
		case !found:
			places[withoutVersion(entry)] = len(out)
			out = append(out, entry)
		case out[i].UID == "":
			out[i] = entry
		}
	}
	return out
}

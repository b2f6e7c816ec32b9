// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// orphans returns the objects of the inventory that are no longer desired. It removes an object from the inventory if it
// is now desired under another API group. Call it only when all desired objects are claimed.
func (r *run) orphans() []entryState {
	return slices.DeleteFunc(r.objects.all(), func(s entryState) bool {
		renamed := !s.claimed && r.objects.hasUnderOtherName(s.Entry)
		if renamed {
			r.objects.forget(s.Ref())
		}
		return s.claimed || renamed
	})
}

// removeRefusing deletes the webhook configurations that are no longer desired and whose webhooks refused objects of this
// call, or could not be called. Otherwise, they would never be deleted, because all other objects have to be applied
// before objects are pruned.
func (r *run) removeRefusing(ctx context.Context) {
	webhooks := r.results.webhooks()
	if len(webhooks) == 0 {
		return
	}
	entries := slices.DeleteFunc(r.objects.all(), func(s entryState) bool {
		isPruned := slices.ContainsFunc(r.rules.PruneGroups, func(g Group) bool { return g.takes(s.Ref()) })
		return s.claimed || s.isLetGo() || !isWebhook(s.Ref().GVK().GroupKind()) || !isPruned || r.objects.hasUnderOtherName(s.Entry)
	})
	forEach(ctx, r.rules.Concurrency, entries, func(_ int, s entryState) {
		end := r.work(ctx, s.Ref(), known{}, func(_ rules, k known) step {
			return k.read(func(r rules, k known) step {
				if k.live != nil && !hasWebhook(k.live, webhooks) {
					return step{known: k}
				}
				return decideOwned(r, k)
			})
		})
		r.results.fail(r.conclude(ctx, end))
	})
}

// hasWebhook reports whether a webhook configuration contains a webhook with one of the given names.
func hasWebhook(configuration *unstructured.Unstructured, names map[string]bool) bool {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	return slices.ContainsFunc(webhooks, func(one any) bool {
		webhook, _ := one.(map[string]any)
		name, _ := webhook["name"].(string)
		return names[name]
	})
}

// removeAll deletes objects group by group. It does not begin a group while a deletion in an earlier group is
// unfinished or has failed.
func (r *run) removeAll(ctx context.Context, entries []entryState, groups []Group) {
	left := slices.DeleteFunc(slices.Clone(entries), func(s entryState) bool { return s.isLetGo() })
	kept := slices.DeleteFunc(slices.Clone(entries), func(s entryState) bool { return !s.isLetGo() })
	forEach(ctx, r.rules.Concurrency, kept, func(_ int, s entryState) { r.results.fail(r.release(ctx, s.Ref(), known{})) })
	for _, group := range groups {
		members := slices.DeleteFunc(slices.Clone(left), func(s entryState) bool { return !group.takes(s.Ref()) })
		left = slices.DeleteFunc(left, func(s entryState) bool { return group.takes(s.Ref()) })
		for i, batch := range batches(members, func(s entryState) bool { return s.Aggregates }) {
			if i > 0 && !r.results.complete(ctx) {
				return
			}
			forEach(ctx, r.rules.Concurrency, batch, func(_ int, s entryState) {
				end := r.work(ctx, s.Ref(), known{removeFinalizers: group.ForceDelete}, decideRemove)
				r.results.fail(r.conclude(ctx, end))
			})
		}
		if group.DeleteAll {
			for _, one := range group.Resources {
				r.removeKind(ctx, group, one)
			}
		}
		if !r.results.complete(ctx) {
			return
		}
	}
	for _, s := range left {
		r.results.leave(s.Ref())
	}
}

// batches splits objects into those that come first and the others. The order within a batch stays the same. There are no
// empty batches.
func batches[T any](objects []T, isFirst func(T) bool) [][]T {
	var first, others []T
	for _, one := range objects {
		if isFirst(one) {
			first = append(first, one)
		} else {
			others = append(others, one)
		}
	}
	return slices.DeleteFunc([][]T{first, others}, func(batch []T) bool { return len(batch) == 0 })
}

// removeKind lists and deletes the objects of a kind. Kubernetes recreates some objects after each deletion, such as
// the ConfigMap with the cluster's certificates. Such objects do not block the next group, because an object counts as
// deleted as soon as an object with another UID has replaced it.
func (r *run) removeKind(ctx context.Context, group Group, t ResourceType) {
	there := *r
	if group.Cluster != nil {
		there.cluster, there.rules.Options = group.Cluster.cluster(), &group.Cluster.options
	}
	namespaces := t.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	found, faults := []Entry{}, []error{}
	for _, namespace := range namespaces {
		entries, err := there.cluster.list(ctx, t.APIVersion, t.Kind, namespace)
		found, faults = append(found, entries...), append(faults, err)
	}
	found = slices.DeleteFunc(found, func(e Entry) bool { return !isIn(t.Names, e.Name) })
	if err := errors.Join(faults...); err != nil {
		r.results.note(Ref{APIVersion: t.APIVersion, Kind: t.Kind}, err)
		return
	}
	forEach(ctx, r.rules.Concurrency, found, func(_ int, e Entry) {
		k := known{entryState: entryState{Entry: e, anyones: true}, removeFinalizers: group.ForceDelete}
		r.results.fail(r.conclude(ctx, there.pursue(ctx, decideRemove(there.rules, k))))
	})
}

// waitsFor returns why an object is unfinished, under the reference of the caller.
func (r *run) waitsFor(ref Ref) Waiting {
	out := r.results.waitsFor(ref)
	out.Ref = ref
	return out
}

// dismiss deletes an object. If the object must stay in the cluster, dismiss only removes it from the inventory.
func (r *run) dismiss(ctx context.Context, ref Ref) (*Error, Waiting) {
	s := r.objects.at(ref)
	switch {
	case s.gone, r.objects.hasUnderOtherName(s.Entry):
		r.objects.forget(ref)
		r.results.note(ref, nil)
		return nil, Waiting{}
	case s.isLetGo():
		return r.release(ctx, ref, known{}), Waiting{}
	}
	end := r.work(ctx, ref, known{}, decideRemove)
	return r.conclude(ctx, end), r.waitsFor(ref)
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/object"
)

// listOrphans returns the objects of the inventory that are no longer desired. It removes an object from the inventory
// if it is now desired under another API group. Call it only when all desired objects are claimed.
func (r *run) listOrphans() []object.Record {
	return slices.DeleteFunc(r.objects.all(), func(s object.Record) bool {
		renamed := !s.Claimed && r.objects.hasUnderOtherName(s.Entry)
		if renamed {
			r.objects.forget(s.Ref())
		}
		return s.Claimed || renamed
	})
}

// removeRefusingWebhooks deletes the webhook configurations that are no longer desired and whose webhooks refused
// objects of this call, or could not be called. Otherwise, they would never be deleted, because all other objects have
// to be applied before objects are pruned.
func (r *run) removeRefusingWebhooks(ctx context.Context) {
	webhooks := r.results.listWebhooks()
	if len(webhooks) == 0 {
		return
	}
	entries := slices.DeleteFunc(r.objects.all(), func(s object.Record) bool {
		isPruned := slices.ContainsFunc(r.options.PruneGroups, func(g DeletionGroup) bool { return g.matches(s.Ref()) })
		return s.Claimed || isReleasedByPolicy(s.Entry) || !isWebhook(s.Ref().GVK().GroupKind()) || !isPruned || r.objects.hasUnderOtherName(s.Entry)
	})
	forEach(ctx, r.options.Concurrency, entries, func(_ int, s object.Record) {
		end := r.processObject(ctx, s.Ref(), decide.Facts{Webhooks: webhooks}, decide.Remove)
		r.results.addError(r.recordResult(ctx, end))
	})
}

// removeAll deletes objects group by group. It does not begin a group while a deletion in an earlier group is
// unfinished or has failed.
func (r *run) removeAll(ctx context.Context, entries []object.Record, groups []DeletionGroup) {
	left := slices.DeleteFunc(slices.Clone(entries), func(s object.Record) bool { return isReleasedByPolicy(s.Entry) })
	kept := slices.DeleteFunc(slices.Clone(entries), func(s object.Record) bool { return !isReleasedByPolicy(s.Entry) })
	forEach(ctx, r.options.Concurrency, kept, func(_ int, s object.Record) { r.results.addError(r.release(ctx, s.Ref(), decide.Facts{})) })
	for _, group := range groups {
		members := slices.DeleteFunc(slices.Clone(left), func(s object.Record) bool { return !group.matches(s.Ref()) })
		left = slices.DeleteFunc(left, func(s object.Record) bool { return group.matches(s.Ref()) })
		for i, batch := range splitFirst(members, func(s object.Record) bool { return s.Aggregates }) {
			if i > 0 && !r.results.isComplete(ctx) {
				return
			}
			forEach(ctx, r.options.Concurrency, batch, func(_ int, s object.Record) {
				end := r.processObject(ctx, s.Ref(), decide.Facts{RemoveFinalizers: group.ForceDelete}, decide.Remove)
				r.results.addError(r.recordResult(ctx, end))
			})
		}
		if group.DeleteAll {
			for _, one := range group.Resources {
				r.removeKind(ctx, group, one)
			}
		}
		if !r.results.isComplete(ctx) {
			return
		}
	}
	for _, s := range left {
		r.results.addSkipped(s.Ref())
	}
}

// splitFirst splits objects into those that come first and the others. The order within a batch stays the same. There
// are no empty batches.
func splitFirst[T any](objects []T, isFirst func(T) bool) [][]T {
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
func (r *run) removeKind(ctx context.Context, group DeletionGroup, t ResourceType) {
	there := *r
	if group.Engine != nil {
		there.cluster, there.options = group.Engine.newCluster(), &group.Engine.options
		there.rules = newRules(there.options, r.rules.Owner)
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
		r.results.recordError(Ref{APIVersion: t.APIVersion, Kind: t.Kind}, err)
		return
	}
	forEach(ctx, r.options.Concurrency, found, func(_ int, e Entry) {
		f := decide.Facts{Record: object.Record{Entry: e, AnyOwner: true}, RemoveFinalizers: group.ForceDelete}
		r.results.addError(r.recordResult(ctx, there.runSteps(ctx, decide.Remove(there.rules, f))))
	})
}

// getWaiting returns why an object is unfinished, under the reference of the caller.
func (r *run) getWaiting(ref Ref) Waiting {
	out := r.results.getWaiting(ref)
	out.Ref = ref
	return out
}

// deleteObject deletes an object. If the object must stay in the cluster, deleteObject only removes it from the
// inventory.
func (r *run) deleteObject(ctx context.Context, ref Ref) (*Error, Waiting) {
	s := r.objects.get(ref)
	switch {
	case s.Gone, r.objects.hasUnderOtherName(s.Entry):
		r.objects.forget(ref)
		r.results.recordError(ref, nil)
		return nil, Waiting{}
	case isReleasedByPolicy(s.Entry):
		return r.release(ctx, ref, decide.Facts{}), Waiting{}
	}
	end := r.processObject(ctx, ref, decide.Facts{}, decide.Remove)
	return r.recordResult(ctx, end), r.getWaiting(ref)
}

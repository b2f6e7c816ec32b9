// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// removeKinds deletes the objects that DeleteAll adds to a group.
func (r *run) removeKinds(ctx context.Context, group Group) {
	for _, one := range group.Resources {
		r.removeKind(ctx, group, one)
	}
}

// removeKind lists and deletes the objects of a kind. Objects that are created again and again by others (such as the
// ConfigMap with the cluster's certificates) do not block it, because it only waits for objects that still exist
// after they were deleted.
func (r *run) removeKind(ctx context.Context, group Group, t ResourceType) {
	cluster := r.Engine
	if group.Cluster != nil {
		cluster = group.Cluster
	}
	there := cluster.newRun(r.owner, Inventory{}, r.hide)
	found, err := there.list(ctx, t)
	if err != nil {
		r.note(Ref{APIVersion: t.APIVersion, Kind: t.Kind}, err)
		return
	}
	forEach(ctx, r.options.Concurrency, found, func(s *slot) { r.note(s.Ref(), there.removeOne(ctx, s, group.ForceDelete)) })
	r.report.Deleted += there.report.Deleted
}

// list returns the objects of a kind in the form of inventory entries.
func (r *run) list(ctx context.Context, t ResourceType) ([]*slot, error) {
	namespaces := t.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	out, faults := []*slot{}, []error{}
	for _, namespace := range namespaces {
		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(Ref{APIVersion: t.APIVersion, Kind: t.Kind + "List"}.GVK())
		if err := r.client.List(ctx, all, client.InNamespace(namespace)); ignoreGone(err) != nil {
			faults = append(faults, err)
		}
		for i := range all.Items {
			one := &all.Items[i]
			if len(t.Names) > 0 && !slices.Contains(t.Names, one.Name) {
				continue
			}
			out = append(out, &slot{Entry: Entry{
				APIVersion: t.APIVersion, Kind: t.Kind, Namespace: one.Namespace, Name: one.Name,
				UID: one.UID, Deleting: one.DeletionTimestamp != nil,
			}, anyones: true})
		}
	}
	return out, errors.Join(faults...)
}

func ignoreGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/managed"
)

// withoutVersion returns a reference with the API group instead of the API version. The result identifies an object
// independently of the API version in which it is read.
func withoutVersion(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// restoreInventory rebuilds a lost inventory from the objects in the target. The policies of the desired objects, which
// are the current objects of the item, are stored in the rebuilt inventory.
func (r *Run) restoreInventory(ctx context.Context, desired []apply.Desired) error {
	wanted := sync.OnceValue(func() map[apply.Ref]apply.Desired {
		out := make(map[apply.Ref]apply.Desired, len(desired))
		for _, d := range desired {
			out[withoutVersion(apply.ToRef(d.Object))] = d
		}
		return out
	})
	complete := func(entry *apply.Entry, _ metav1.Object) {
		if d, found := wanted()[withoutVersion(entry.Ref())]; found {
			entry.Policy, entry.AnnotateBeforeDelete, entry.PatchBeforeDelete = toStoredPolicy(d.Policy), d.AnnotateBeforeDelete, d.PatchBeforeDelete
		}
	}
	if !r.Managed.HasLostInventory() {
		return r.Managed.RestoreInventory(ctx, managed.Search{Complete: complete})
	}
	kinds := map[schema.GroupVersionKind]map[string]bool{}
	for _, d := range desired {
		ref := apply.ToRef(d.Object)
		if kinds[ref.GVK()] == nil {
			kinds[ref.GVK()] = map[string]bool{}
		}
		kinds[ref.GVK()][ref.Namespace] = true
	}
	return r.Managed.RestoreInventory(ctx, managed.Search{Kinds: kinds, SharedKinds: r.EngineOptions.SharedKinds, Complete: complete})
}

// toStoredPolicy returns a policy in the form in which an inventory stores it.
func toStoredPolicy(policy apply.Policy) apply.Policy {
	if policy == apply.PolicyManage {
		return ""
	}
	return policy
}

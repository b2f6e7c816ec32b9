// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/upkeep"
)

// withoutVersion returns a reference with the API group instead of the API version. The result identifies an object
// independently of the API version in which it is read.
func withoutVersion(ref apply.Ref) apply.Ref {
	ref.APIVersion = ref.GVK().Group
	return ref
}

// recover rebuilds a lost inventory from the objects in the target. The parameter `desired` contains the current
// objects of the item. Their policies are stored in the rebuilt inventory.
func (r *Run) recover(ctx context.Context, desired []apply.Desired) error {
	wanted := sync.OnceValue(func() map[apply.Ref]apply.Desired {
		out := make(map[apply.Ref]apply.Desired, len(desired))
		for _, d := range desired {
			out[withoutVersion(apply.RefOf(d.Object))] = d
		}
		return out
	})
	complete := func(entry *apply.Entry, _ metav1.Object) {
		if d, found := wanted()[withoutVersion(entry.Ref())]; found {
			entry.Policy, entry.AnnotateBeforeDelete, entry.PatchBeforeDelete = policyOf(d.Policy), d.AnnotateBeforeDelete, d.PatchBeforeDelete
		}
	}
	if !r.Up.LostInventory() {
		return r.Up.Recover(ctx, upkeep.Search{Complete: complete})
	}
	kinds := map[schema.GroupVersionKind]map[string]bool{}
	for _, d := range desired {
		ref := apply.RefOf(d.Object)
		if kinds[ref.GVK()] == nil {
			kinds[ref.GVK()] = map[string]bool{}
		}
		kinds[ref.GVK()][ref.Namespace] = true
	}
	return r.Up.Recover(ctx, upkeep.Search{Kinds: kinds, SharedKinds: r.Engine.SharedKinds, Complete: complete})
}

// policyOf returns a policy in the form in which an inventory stores it.
func policyOf(policy apply.Policy) apply.Policy {
	if policy == apply.Manage {
		return ""
	}
	return policy
}

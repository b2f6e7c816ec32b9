// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/internal/object"
)

// stage is a group of objects that Apply writes together. The order of the constants is the order in which Apply writes
// the stages. Deletions use the reverse order.
type stage int

const (
	stageDefinitions stage = iota
	stageNamespaces
	stageCluster
	stageNamespaced
	// stageServed contains the kinds for which the API server calls a server that the other objects may contain.
	stageServed
	stageEnd
)

func getStage(gk schema.GroupKind, namespaced bool) stage {
	switch {
	case object.IsDefinition(gk):
		return stageDefinitions
	case isWebhook(gk), gk == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return stageServed
	case object.IsNamespace(gk):
		return stageNamespaces
	case namespaced:
		return stageNamespaced
	}
	return stageCluster
}

// isAggregating reports whether a controller fills an object from other objects of its kind.
func isAggregating(obj *unstructured.Unstructured) bool {
	if obj == nil || obj.GroupVersionKind().Group != "rbac.authorization.k8s.io" {
		return false
	}
	rule, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "aggregationRule")
	return rule != nil
}

// isWebhook reports whether the objects of a kind make the API server call admission webhooks.
func isWebhook(gk schema.GroupKind) bool {
	return gk.Group == "admissionregistration.k8s.io" && (gk.Kind == "ValidatingWebhookConfiguration" || gk.Kind == "MutatingWebhookConfiguration")
}

// splitIntoStages splits objects into CustomResourceDefinitions, namespaces, cluster-scoped objects, namespaced
// objects, and the webhook configurations and APIServices. Within a stage, it keeps their order.
func splitIntoStages(objects []*desiredObject) [][]*desiredObject {
	out := make([][]*desiredObject, stageEnd)
	for _, o := range objects {
		at := getStage(o.ref.GVK().GroupKind(), o.kind.namespaced)
		if o.unserved != nil {
			at = stageNamespaced // an object of an earlier stage may install the kind
		}
		out[at] = append(out[at], o)
	}
	return out
}

// removeBlocked returns the objects of a stage without those that depend on an unfinished object, and records that the
// others wait. An object depends on the CustomResourceDefinition of its kind, if the item contains it. A new webhook
// configuration or APIService depends on all other objects of the item, because one of them may be its server: as long
// as the server does not run, the API server refuses the objects that it asks this server about. It does not wait for
// objects that the cluster does not serve, because the new APIService may serve them. An object in a namespace that
// does not exist is written nevertheless, because only the answer shows whether the namespace exists.
func (r *run) removeBlocked(ctx context.Context, objects []*desiredObject) []*desiredObject {
	complete := r.results.isCompleteIfServed(ctx)
	return slices.DeleteFunc(objects, func(o *desiredObject) bool {
		reason := ""
		switch stage := getStage(o.ref.GVK().GroupKind(), o.kind.namespaced); {
		case o.isUntouched():
		case o.kind.fromItem && !r.results.isFinished(o.kind.definition):
			reason = "waits for " + o.kind.definition.String()
		case stage == stageServed && !complete && r.objects.get(o.ref).UID == "":
			reason = "is created when all other objects are applied"
		}
		if reason != "" {
			r.results.addBlocked(o.ref, reason)
		}
		return reason != ""
	})
}

// forEach calls f for each index and element of the list, in the order of the list. At most `limit` calls run at the
// same time. After the context has ended, forEach starts no more calls.
func forEach[T any](ctx context.Context, limit int, list []T, f func(int, T)) {
	var all sync.WaitGroup
	var taken atomic.Int64
	for range min(limit, len(list)) {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(list) {
					return
				}
				f(i, list[i])
			}
		})
	}
	all.Wait()
}

// DeletionGroupType is the name of a predefined deletion group.
type DeletionGroupType string

const (
	// GroupNamespaced contains all namespaced objects.
	GroupNamespaced DeletionGroupType = "namespaced-resources"
	// GroupCluster contains all cluster-scoped objects except CustomResourceDefinitions.
	GroupCluster DeletionGroupType = "cluster-scoped-resources"
	// GroupDefinitions contains the CustomResourceDefinitions.
	GroupDefinitions DeletionGroupType = "crds"
	// GroupEmpty contains no objects.
	GroupEmpty DeletionGroupType = "empty"

	groupWebhooks    DeletionGroupType = "webhook configurations"
	groupClusterOnly DeletionGroupType = "cluster-scoped-resources without namespaces and webhook configurations"
	groupNamespaces  DeletionGroupType = "namespaces"
)

// DeletionGroup is a set of objects that are deleted together. The deletion of the next group begins when all objects
// of this group are gone. An object belongs to the first group that matches it. A Group specifies either Type or
// Resources.
type DeletionGroup struct {
	// Type selects a predefined group.
	Type DeletionGroupType
	// Resources defines a custom group.
	Resources []ResourceType
	// ForceDelete makes the engine remove the finalizers of the objects while they are being deleted.
	ForceDelete bool
	// DeleteAll makes the engine delete all objects that Resources selects, including objects of other owners.
	// Engine.Delete deletes them even if the inventory is empty. Engine.Apply deletes them only if the inventory
	// contains an object that is no longer desired.
	DeleteAll bool
	// Engine is an engine for the cluster in which DeleteAll deletes objects. The default is the engine on which
	// Delete or Apply was called. If Engine is set, the group contains no objects of the inventory.
	Engine *Engine
}

// ResourceType selects the objects of one kind for a custom group.
type ResourceType struct {
	APIVersion, Kind string
	// Names and Namespaces restrict the selection. An empty list means no restriction.
	Names, Namespaces []string
}

// DefaultDeletionGroups returns the groups in the reverse order of Apply: webhook configurations, namespaced objects,
// cluster-scoped objects, namespaces, CustomResourceDefinitions. APIServices are deleted together with the other
// cluster-scoped objects, because the objects that they serve could not be deleted without them.
func DefaultDeletionGroups() []DeletionGroup {
	return []DeletionGroup{{Type: groupWebhooks}, {Type: GroupNamespaced}, {Type: groupClusterOnly}, {Type: groupNamespaces}, {Type: GroupDefinitions}}
}

// matches reports whether an object belongs to the group. An object without a namespace counts as cluster-scoped.
func (g DeletionGroup) matches(ref Ref) bool {
	stage := getStage(ref.GVK().GroupKind(), ref.Namespace != "")
	switch g.Type {
	case GroupNamespaced:
		return ref.Namespace != ""
	case GroupCluster:
		return ref.Namespace == "" && stage != stageDefinitions
	case groupWebhooks:
		return isWebhook(ref.GVK().GroupKind())
	case groupClusterOnly:
		return stage == stageCluster || stage == stageServed && !isWebhook(ref.GVK().GroupKind())
	case groupNamespaces:
		return stage == stageNamespaces
	case GroupDefinitions:
		return stage == stageDefinitions
	case GroupEmpty:
		return false
	}
	return g.Engine == nil && slices.ContainsFunc(g.Resources, func(t ResourceType) bool { return t.matches(ref) })
}

func (t ResourceType) matches(ref Ref) bool {
	return t.APIVersion == ref.APIVersion && t.Kind == ref.Kind && isIn(t.Names, ref.Name) && isIn(t.Namespaces, ref.Namespace)
}

// isIn reports whether the list contains the text. It also returns true if the list is empty.
func isIn(list []string, text string) bool { return len(list) == 0 || slices.Contains(list, text) }

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupType is a predefined deletion group.
type GroupType string

const (
	// GroupNamespaced contains all namespaced objects.
	GroupNamespaced GroupType = "namespaced-resources"
	// GroupCluster contains all cluster-scoped objects except CustomResourceDefinitions.
	GroupCluster GroupType = "cluster-scoped-resources"
	// GroupDefinitions contains the CustomResourceDefinitions.
	GroupDefinitions GroupType = "crds"
	// GroupEmpty has no members.
	GroupEmpty GroupType = "empty"

	groupClusterOnly GroupType = "cluster-scoped-resources without namespaces"
	groupNamespaces  GroupType = "namespaces"
)

// Group is a step of a deletion, which must be finished before the next one begins. An object belongs to the first
// group that takes it. Either Type or Resources is set.
type Group struct {
	// Type selects a predefined group.
	Type GroupType
	// Resources define a custom group.
	Resources []ResourceType
	// ForceDelete also removes finalizers from objects that are being deleted.
	ForceDelete bool
	// DeleteAll deletes all objects of Resources in the cluster, whatever they belong to, even if the inventory is
	// empty. With Apply it takes effect only when something is pruned.
	DeleteAll bool
	// Cluster is the cluster in which DeleteAll works. The default is the cluster of the engine.
	Cluster *Engine
}

// ResourceType selects objects of a custom group.
type ResourceType struct {
	APIVersion, Kind string
	// Names and Namespaces restrict the selection. An empty list selects all.
	Names, Namespaces []string
}

// DefaultGroups returns the reverse order of Apply: namespaced objects, cluster-scoped objects, namespaces,
// CustomResourceDefinitions.
func DefaultGroups() []Group {
	return []Group{{Type: GroupNamespaced}, {Type: groupClusterOnly}, {Type: groupNamespaces}, {Type: GroupDefinitions}}
}

// takes reports whether an object belongs to the group. An object without a namespace counts as cluster-scoped.
func (g Group) takes(ref Ref) bool {
	isNamespace := ref.GVK().GroupKind() == schema.GroupKind{Kind: "Namespace"}
	definition := isDefinition(ref.GVK().GroupKind())
	switch g.Type {
	case GroupNamespaced:
		return ref.Namespace != ""
	case GroupCluster:
		return ref.Namespace == "" && !definition
	case groupClusterOnly:
		return ref.Namespace == "" && !definition && !isNamespace
	case groupNamespaces:
		return isNamespace
	case GroupDefinitions:
		return definition
	case GroupEmpty:
		return false
	}
	return g.Cluster == nil && slices.ContainsFunc(g.Resources, func(t ResourceType) bool { return t.takes(ref) })
}

func (t ResourceType) takes(ref Ref) bool {
	return t.APIVersion == ref.APIVersion && t.Kind == ref.Kind && isIn(t.Names, ref.Name) && isIn(t.Namespaces, ref.Namespace)
}

// isIn reports whether the list contains the text. An empty list contains every text.
func isIn(list []string, text string) bool { return len(list) == 0 || slices.Contains(list, text) }

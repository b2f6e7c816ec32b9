// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupType is a predefined deletion group.
type GroupType string

const (
	// GroupNamespaced is everything that lies in a namespace.
	GroupNamespaced GroupType = "namespaced-resources"
	// GroupCluster is everything that does not, but for CustomResourceDefinitions.
	GroupCluster GroupType = "cluster-scoped-resources"
	// GroupDefinitions are the CustomResourceDefinitions.
	GroupDefinitions GroupType = "crds"
	// GroupEmpty has no members.
	GroupEmpty GroupType = "empty"

	groupClusterOnly GroupType = "cluster-scoped-resources without namespaces"
	groupNamespaces  GroupType = "namespaces"
)

// Group is a step of a deletion: it must be over before the next one begins. An object belongs to the first group
// that takes it. Either Type or Resources is set.
type Group struct {
	// Type makes it a predefined group.
	Type GroupType
	// Resources make it a custom group.
	Resources []ResourceType
	// ForceDelete also removes finalizers from objects that were told to go.
	ForceDelete bool
	// DeleteAll deletes all objects of Resources in the cluster, whomever they belong to, also when the inventory
	// is empty. With Apply it runs only when something is pruned.
	DeleteAll bool
	// Cluster is where DeleteAll works; nil: the cluster of the engine.
	Cluster *Engine
}

// ResourceType names objects of a custom group.
type ResourceType struct {
	APIVersion, Kind string
	// Names and Namespaces narrow it down; empty: all.
	Names, Namespaces []string
}

// DefaultGroups is the order of apply turned round: namespaced, cluster-scoped, namespaces,
// CustomResourceDefinitions.
func DefaultGroups() []Group {
	return []Group{{Type: GroupNamespaced}, {Type: groupClusterOnly}, {Type: groupNamespaces}, {Type: GroupDefinitions}}
}

// takes tells whether an object belongs to the group. What has no namespace counts as cluster-scoped.
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

// isIn: an empty list has everything.
func isIn(list []string, text string) bool { return len(list) == 0 || slices.Contains(list, text) }

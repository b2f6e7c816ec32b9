// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gardener/landscaper/apis/crds"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// Kind describes a kind of objects that a Server serves. A Server serves each kind in one version.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the name of the kind in URLs, such as configmaps.
	Resource string
	// Namespaced is true if the objects are in namespaces.
	Namespaced bool
	// HasStatus is true if the kind has the subresource "status". The objects of such a kind have a generation, which
	// increases with each change outside of the metadata and the status.
	HasStatus bool
}

// DefaultKinds returns the kinds that each Server serves: those of Landscaper, and the kinds of Kubernetes that a
// deployer with leader election, events and exports uses.
func DefaultKinds() []Kind { return slices.Clone(defaultKinds()) }

var defaultKinds = sync.OnceValue(func() []Kind {
	kinds := []Kind{
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: "namespaces", HasStatus: true},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Namespaced: true},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets", Namespaced: true},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Event"}, Resource: "events", Namespaced: true},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, Resource: "serviceaccounts", Namespaced: true},
		{GroupVersionKind: schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, Resource: "events", Namespaced: true},
		{GroupVersionKind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, Resource: "leases", Namespaced: true},
		{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resource: "deployments", Namespaced: true, HasStatus: true},
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
			Resource:         "customresourcedefinitions", HasStatus: true,
		},
	}
	for _, crd := range crds.CRDs() {
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				kinds = append(kinds, Kind{
					GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
					Resource:         crd.Spec.Names.Plural, Namespaced: crd.Spec.Scope == "Namespaced",
					HasStatus: version.Subresources != nil && version.Subresources.Status != nil,
				})
			}
		}
	}
	return kinds
})

// resource is a Kind with its objects.
type resource struct {
	Kind
	fields  *managedfields.FieldManager
	objects map[objectKey]object
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// newResource returns a resource without objects.
func newResource(k Kind, fields *managedfields.FieldManager) *resource {
	return &resource{Kind: k, fields: fields, objects: map[objectKey]object{}}
}

// fieldManagers contains the field managers of all kinds, which have no state. They are kept because it takes time to
// create them.
var fieldManagers sync.Map

// newFieldManager returns the field manager for a kind. It knows the schemas of the kinds of Kubernetes. For other
// kinds, each list is one field.
func newFieldManager(k Kind) (*managedfields.FieldManager, error) {
	if known, ok := fieldManagers.Load(k.GroupVersionKind); ok {
		return known.(*managedfields.FieldManager), nil //nolint:forcetypeassert // only this function stores values
	}
	converter := managedfields.NewDeducedTypeConverter()
	if scheme.Scheme.Recognizes(k.GroupVersionKind) {
		converter = builtinTypes()
	}
	fields, err := managedfields.NewDefaultCRDFieldManager(converter, unconverted{}, unconverted{}, unconverted{}, k.GroupVersionKind, k.GroupVersion(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("create field manager for %s: %w", k.GroupVersionKind, err)
	}
	fieldManagers.Store(k.GroupVersionKind, fields)
	return fields, nil
}

// builtinTypes returns the schemas of the kinds of Kubernetes.
var builtinTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// unconverted implements the interfaces that a field manager needs for kinds with one version and without defaults.
type unconverted struct{}

var errOneVersion = errors.New("the simulated API server serves each kind in one version")

// Convert implements runtime.ObjectConvertor.
func (unconverted) Convert(any, any, any) error { return errOneVersion }

// ConvertToVersion returns the object itself if it has the wanted version.
func (unconverted) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	kind := in.GetObjectKind().GroupVersionKind()
	if wanted, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{kind}); ok && wanted == kind {
		return in, nil
	}
	return nil, errOneVersion
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (unconverted) ConvertFieldLabel(_ schema.GroupVersionKind, _, _ string) (string, string, error) {
	return "", "", errOneVersion
}

// Default sets no defaults.
func (unconverted) Default(runtime.Object) {}

// New returns an empty object.
func (unconverted) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	return newObject(kind), nil
}

// discoverGroups returns the aggregated discovery of the core group, or of all other groups.
func (s *Server) discoverGroups(core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}}
	for _, gv := range s.groupVersions {
		if (gv.Group == "") != core {
			continue
		}
		version := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, r := range s.resourcesOf(gv) {
			version.Resources = append(version.Resources, discoverResource(r.Kind))
		}
		i := slices.IndexFunc(list.Items, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == gv.Group })
		if i < 0 {
			i = len(list.Items)
			list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gv.Group}})
		}
		list.Items[i].Versions = append(list.Items[i].Versions, version)
	}
	return list
}

// discoverResource describes a kind for the aggregated discovery.
func discoverResource(k Kind) apidiscoveryv2.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
	d := apidiscoveryv2.APIResourceDiscovery{Resource: k.Resource, ResponseKind: kind, Scope: apidiscoveryv2.ScopeCluster, Verbs: allVerbs}
	if k.Namespaced {
		d.Scope = apidiscoveryv2.ScopeNamespace
	}
	if k.HasStatus {
		d.Subresources = []apidiscoveryv2.APISubresourceDiscovery{{Subresource: statusSubresource, ResponseKind: kind, Verbs: statusVerbs}}
	}
	return d
}

var (
	allVerbs    = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	statusVerbs = []string{"get", "patch", "update"}
)

// statusSubresource is the name of the subresource with the status of an object.
const statusSubresource = "status"

// listGroups returns the groups for clients that do not use the aggregated discovery.
func (s *Server) listGroups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	for _, gv := range s.groupVersions {
		if gv.Group == "" {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
	}
	return list
}

// listResources returns the resources of a group version, or nil if the server does not serve it.
func (s *Server) listResources(gv schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv.String()}
	for _, r := range s.resourcesOf(gv) {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Resource, Namespaced: r.Namespaced, Kind: r.Kind.Kind, Verbs: allVerbs})
		if r.HasStatus {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Resource + "/" + statusSubresource, Namespaced: r.Namespaced, Kind: r.Kind.Kind, Verbs: statusVerbs})
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// resourcesOf returns the resources of a group version in a fixed order.
func (s *Server) resourcesOf(gv schema.GroupVersion) []*resource {
	var found []*resource
	for _, r := range s.resources {
		if r.GroupVersion() == gv {
			found = append(found, r)
		}
	}
	return found
}

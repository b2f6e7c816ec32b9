// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// discoveryResult is the result of a discovery, together with the kinds that an earlier discovery found in the versions
// that the last one could not read. It does not change.
type discoveryResult struct {
	cachingMapper

	withStatus map[schema.GroupVersionKind]bool
	number     uint64
	groups     map[string]*restmapper.APIGroupResources
	failed     map[schema.GroupVersion]error // the versions that the last discovery could not read
}

// maxKeptSize limits the size of the kinds that stay known although the last discovery could not read their versions,
// as an estimate in bytes. A target could otherwise fill the memory with kinds that it serves only once.
const maxKeptSize = 1 << 20

// update returns the result of the next discovery. Versions that could not be read keep their known kinds. The
// receiver may be nil.
func (d *discoveryResult) update(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error) *discoveryResult {
	out := &discoveryResult{number: 1, groups: map[string]*restmapper.APIGroupResources{}, failed: failed}
	byVersion := map[string][]metav1.APIResource{}
	for _, list := range lists {
		byVersion[list.GroupVersion] = list.APIResources
	}
	all := make([]*restmapper.APIGroupResources, 0, len(groups))
	for _, group := range groups {
		one := &restmapper.APIGroupResources{Group: *group, VersionedResources: map[string][]metav1.APIResource{}}
		for _, version := range group.Versions {
			if resources, found := byVersion[version.GroupVersion]; found {
				one.VersionedResources[version.Version] = resources
			}
		}
		all = append(all, one)
		out.groups[group.Name] = one
	}
	if d != nil {
		out.number = d.number + 1
		all = out.keepFailedVersions(d, all)
	}
	out.RESTMapper, out.withStatus = restmapper.NewDiscoveryRESTMapper(all), findKindsWithStatus(all)
	return out
}

// keepFailedVersions adds the kinds of an earlier result for the versions that could not be read.
func (d *discoveryResult) keepFailedVersions(before *discoveryResult, all []*restmapper.APIGroupResources) []*restmapper.APIGroupResources {
	left := maxKeptSize
	sorted := slices.SortedFunc(maps.Keys(d.failed), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	for _, version := range sorted {
		resources := before.listResources(version)
		if left -= estimateSize(resources); len(resources) == 0 || left < 0 {
			continue
		}
		group := d.groups[version.Group]
		if group == nil {
			group = &restmapper.APIGroupResources{Group: metav1.APIGroup{Name: version.Group}, VersionedResources: map[string][]metav1.APIResource{}}
			d.groups[version.Group] = group
			all = append(all, group)
		}
		name := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
		if !slices.Contains(group.Group.Versions, name) {
			group.Group.Versions = append(group.Group.Versions, name)
		}
		group.VersionedResources[version.Version] = resources
	}
	return all
}

// hasChangedKinds reports whether a kind of an earlier result has another resource or another scope now, or is gone. A
// kind that is gone may come back with another scope. The earlier result may be nil.
func (d *discoveryResult) hasChangedKinds(before *discoveryResult) bool {
	if before == nil {
		return false
	}
	for name, group := range before.groups {
		for version, resources := range group.VersionedResources {
			now := listIdentities(d.listResources(schema.GroupVersion{Group: name, Version: version}))
			if len(listIdentities(resources).Difference(now)) > 0 {
				return true
			}
		}
	}
	return false
}

// kindIdentity is what a client remembers about a kind.
type kindIdentity struct {
	kind, resource string
	namespaced     bool
}

func listIdentities(resources []metav1.APIResource) sets.Set[kindIdentity] {
	out := make(sets.Set[kindIdentity], len(resources))
	for i := range resources {
		out.Insert(kindIdentity{resources[i].Kind, resources[i].Name, resources[i].Namespaced})
	}
	return out
}

// estimateSize estimates the memory of resources in bytes.
func estimateSize(resources []metav1.APIResource) int {
	size := 0
	for i := range resources {
		r := &resources[i]
		size += 256 + len(r.Name) + len(r.SingularName) + len(r.Kind) + len(r.Group) + len(r.Version)
		for _, text := range slices.Concat(r.Verbs, r.ShortNames, r.Categories) {
			size += 16 + len(text)
		}
	}
	return size
}

func (d *discoveryResult) listResources(version schema.GroupVersion) []metav1.APIResource {
	if group := d.groups[version.Group]; group != nil {
		return group.VersionedResources[version.Version]
	}
	return nil
}

// hasVersion reports whether the last discovery could read a version.
func (d *discoveryResult) hasVersion(version schema.GroupVersion) bool {
	if _, failed := d.failed[version]; failed || d.groups[version.Group] == nil {
		return false
	}
	_, found := d.groups[version.Group].VersionedResources[version.Version]
	return found
}

// hasVerb reports whether a resource supports a verb.
func (d *discoveryResult) hasVerb(resource schema.GroupVersionResource, verb string) bool {
	return slices.ContainsFunc(d.listResources(resource.GroupVersion()), func(r metav1.APIResource) bool {
		return r.Name == resource.Resource && slices.Contains(r.Verbs, verb)
	})
}

// getFailure returns an error that names the versions of a group that the last discovery could not read, or nil if
// there are none.
func (d *discoveryResult) getFailure(group string) error {
	failed := map[schema.GroupVersion]error{}
	for version, err := range d.failed {
		if version.Group == group {
			failed[version] = err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &discovery.ErrGroupDiscoveryFailed{Groups: failed}
}

// cachingMapper is a RESTMapper that remembers the mapping of each kind, because a lookup in the result of a discovery
// is slow. It does not remember that a kind is unknown.
type cachingMapper struct {
	meta.RESTMapper

	mappings sync.Map // by GroupVersionKind
}

func (r *cachingMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return r.RESTMapper.RESTMapping(gk, versions...)
	}
	gvk := gk.WithVersion(versions[0])
	if found, ok := r.mappings.Load(gvk); ok {
		mapping := *found.(*meta.RESTMapping) //nolint:forcetypeassert // only mappings are stored
		return &mapping, nil
	}
	mapping, err := r.RESTMapper.RESTMapping(gk, versions...)
	if err == nil {
		stored := *mapping
		r.mappings.Store(gvk, &stored)
	}
	return mapping, err
}

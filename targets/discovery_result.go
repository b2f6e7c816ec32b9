// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// discoveryResult is the result of a discovery, together with the kinds that an earlier discovery found in the versions
// that the last one could not read. It does not change.
type discoveryResult struct {
	*kinds

	number uint64
	failed map[schema.GroupVersion]error // the versions that the last discovery could not read
}

// maxKeptSize limits the size of the kinds that stay known although the last discovery could not read their versions,
// as an estimate in bytes. A target could otherwise fill the memory with kinds that it serves only once.
const maxKeptSize = 1 << 20

// update returns the result of the next discovery. Versions that could not be read keep their known kinds. The
// receiver may be nil. If another target serves the same kinds, the results share them in the cache.
func (d *discoveryResult) update(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error, cache *kindsCache) *discoveryResult {
	out := &discoveryResult{number: 1, failed: failed}
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
	}
	if d != nil {
		out.number = d.number + 1
		all = d.keepFailedVersions(failed, all)
	}
	out.kinds = cache.intern(all)
	return out
}

// keepFailedVersions adds the kinds of this result to those of the next one, for the versions that could not be read.
func (d *discoveryResult) keepFailedVersions(failed map[schema.GroupVersion]error, all []*restmapper.APIGroupResources) []*restmapper.APIGroupResources {
	left, groups := maxKeptSize, groupsByName(all)
	sorted := slices.SortedFunc(maps.Keys(failed), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	for _, version := range sorted {
		resources := d.listResources(version)
		if left -= estimateSize(resources); len(resources) == 0 || left < 0 {
			continue
		}
		group := groups[version.Group]
		if group == nil {
			group = &restmapper.APIGroupResources{Group: metav1.APIGroup{Name: version.Group}, VersionedResources: map[string][]metav1.APIResource{}}
			groups[version.Group] = group
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

// hasVersion reports whether the last discovery could read a version.
func (d *discoveryResult) hasVersion(version schema.GroupVersion) bool {
	if _, failed := d.failed[version]; failed || d.groups[version.Group] == nil {
		return false
	}
	_, found := d.groups[version.Group].VersionedResources[version.Version]
	return found
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

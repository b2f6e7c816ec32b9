// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"crypto/sha256"
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// kinds are the kinds that a target serves. They do not change, so targets that serve the same kinds share them: the kinds
// of an API server without custom resources take 300 KB.
type kinds struct {
	cachingMapper

	withStatus map[schema.GroupVersionKind]bool
	groups     map[string]*restmapper.APIGroupResources
}

func newKinds(all []*restmapper.APIGroupResources) *kinds {
	return &kinds{
		cachingMapper: cachingMapper{RESTMapper: restmapper.NewDiscoveryRESTMapper(all)},
		withStatus:    findKindsWithStatus(all), groups: groupsByName(all),
	}
}

// groupsByName returns a map of API groups by name.
func groupsByName(all []*restmapper.APIGroupResources) map[string]*restmapper.APIGroupResources {
	out := make(map[string]*restmapper.APIGroupResources, len(all))
	for _, group := range all {
		out[group.Group.Name] = group
	}
	return out
}

func (k *kinds) listResources(version schema.GroupVersion) []metav1.APIResource {
	if group := k.groups[version.Group]; group != nil {
		return group.VersionedResources[version.Version]
	}
	return nil
}

// hasVerb reports whether a resource supports a verb.
func (k *kinds) hasVerb(resource schema.GroupVersionResource, verb string) bool {
	return slices.ContainsFunc(k.listResources(resource.GroupVersion()), func(r metav1.APIResource) bool {
		return r.Name == resource.Resource && slices.Contains(r.Verbs, verb)
	})
}

// kindsCache contains the kinds that a target uses at the moment, by the hash of their description. It is safe for
// concurrent use.
type kindsCache struct {
	mu      sync.Mutex
	entries map[[sha256.Size]byte]weak.Pointer[kinds]
}

// intern returns the kinds with the given description. The receiver may be nil; the kinds are then not shared.
func (c *kindsCache) intern(all []*restmapper.APIGroupResources) *kinds {
	raw, err := json.Marshal(all)
	if err != nil || c == nil {
		return newKinds(all)
	}
	key := sha256.Sum256(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.entries[key].Value(); known != nil {
		return known
	}
	created := newKinds(all)
	if c.entries == nil {
		c.entries = map[[sha256.Size]byte]weak.Pointer[kinds]{}
	}
	c.entries[key] = weak.Make(created)
	runtime.AddCleanup(created, c.removeUnused, key)
	return created
}

// removeUnused removes an entry whose kinds no target uses any more.
func (c *kindsCache) removeUnused(key [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key].Value() == nil {
		delete(c.entries, key)
	}
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

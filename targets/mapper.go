// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
)

// rediscoverAfter is the minimum time between a discovery and the next discovery that an unknown kind causes.
const rediscoverAfter = 10 * time.Second

// mapper is the RESTMapper of a target. It discovers the kinds when the client connects. When a kind is unknown, it
// discovers the kinds again, but at most every ten seconds. It is safe for concurrent use.
type mapper struct {
	ctx      context.Context // for methods without a context parameter; canceled with the client
	disco    discovery.DiscoveryInterfaceWithContext
	clk      clock.PassiveClock
	timeout  time.Duration
	observed func(error) // counts a discovery in the metrics

	loading sync.Mutex // held during a discovery

	mu     sync.RWMutex
	known  meta.RESTMapper
	at     time.Time
	forced bool // set by Reset
}

// load discovers the kinds of the target. If an API service does not respond, its kinds are missing from the result.
func (m *mapper) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.timeout, errNoAnswer)
	defer cancel()
	ctx, release := Hold(ctx)
	defer release()
	resources, err := restmapper.GetAPIGroupResourcesWithContext(ctx, m.disco)
	m.observed(err)
	if err != nil {
		return fmt.Errorf("discover the kinds of the target: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.at, m.forced = newRemembering(resources), m.clk.Now(), false
	return nil
}

// reload discovers the kinds again if the last discovery is old enough. The argument `tried` is the discovery result in
// which the caller did not find a kind. reload returns true if there is a newer result now.
func (m *mapper) reload(tried meta.RESTMapper) (bool, error) {
	m.loading.Lock()
	defer m.loading.Unlock()
	current, due := m.current()
	if current != tried {
		return true, nil // a concurrent call has already discovered the kinds
	}
	if !due {
		return false, nil
	}
	err := m.load(m.ctx)
	return err == nil, err
}

// Deletable discovers the resources of the target whose objects can be listed and deleted, each in its preferred
// version. The result `missing` contains the names of group versions whose API service does not respond. Deletable
// returns an error if the target does not respond.
func (c *Client) Deletable(ctx context.Context) (found []metav1.APIResource, missing []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.mapper.timeout, errNoAnswer)
	defer cancel()
	ctx, release := Hold(ctx)
	defer release()
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, c.mapper.disco)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("discover the kinds of the target: %w", err)
	}
	for version := range failed {
		missing = append(missing, version.String())
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			missing = append(missing, list.GroupVersion)
			continue
		}
		for _, resource := range list.APIResources {
			resource.Group, resource.Version = version.Group, version.Version
			found = append(found, resource)
		}
	}
	slices.SortFunc(found, func(a, b metav1.APIResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	return found, missing, nil
}

func (m *mapper) current() (known meta.RESTMapper, due bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.known, m.forced || m.clk.Since(m.at) >= rediscoverAfter
}

// Reset makes the next unknown kind cause a discovery immediately. Call it, for example, when a
// CustomResourceDefinition is established.
func (m *mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forced = true
}

// ask looks up a kind. If the kind is unknown, ask discovers the kinds again and then looks up the kind once more.
func ask[T any](m *mapper, look func(meta.RESTMapper) (T, error)) (T, error) {
	known, _ := m.current()
	out, err := look(known)
	if !meta.IsNoMatchError(err) {
		return out, err
	}
	newer, failure := m.reload(known)
	if failure != nil {
		return out, failure
	}
	if !newer {
		return out, err
	}
	known, _ = m.current()
	return look(known)
}

func (m *mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, func(known meta.RESTMapper) (schema.GroupVersionKind, error) { return known.KindFor(r) })
}

func (m *mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(m, func(known meta.RESTMapper) ([]schema.GroupVersionKind, error) { return known.KindsFor(r) })
}

func (m *mapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(m, func(known meta.RESTMapper) (schema.GroupVersionResource, error) { return known.ResourceFor(r) })
}

func (m *mapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(m, func(known meta.RESTMapper) ([]schema.GroupVersionResource, error) { return known.ResourcesFor(r) })
}

func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return ask(m, func(known meta.RESTMapper) (*meta.RESTMapping, error) { return known.RESTMapping(gk, versions...) })
}

func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return ask(m, func(known meta.RESTMapper) ([]*meta.RESTMapping, error) { return known.RESTMappings(gk, versions...) })
}

func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return ask(m, func(known meta.RESTMapper) (string, error) { return known.ResourceSingularizer(resource) })
}

// remembering is a RESTMapper that remembers the mapping of each kind, because a lookup in the result of a discovery is
// slow. It does not remember that a kind is unknown.
type remembering struct {
	meta.RESTMapper

	mappings   sync.Map // by GroupVersionKind
	withStatus map[schema.GroupVersionKind]bool
}

func newRemembering(resources []*restmapper.APIGroupResources) *remembering {
	return &remembering{RESTMapper: restmapper.NewDiscoveryRESTMapper(resources), withStatus: kindsWithStatus(resources)}
}

func (r *remembering) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
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

// kinds discovers the kinds of a target. It limits the number of API group versions, because client-go sends one
// request for each of them, all at the same time.
type kinds struct {
	*discovery.DiscoveryClient
	limits *Limits
	hit    func(string)
}

func (k *kinds) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResourcesWithContext(ctx, k)
}

func (k *kinds) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	groups, resources, failed, err := k.DiscoveryClient.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil || groups == nil {
		return groups, resources, failed, err
	}
	versions := 0
	for i := range groups.Groups {
		versions += len(groups.Groups[i].Versions)
	}
	if versions > k.limits.Groups {
		k.hit("groups")
		return nil, nil, nil, &LimitError{Option: "Groups", Reason: fmt.Sprintf("names %d API group versions, more than %d", versions, k.limits.Groups)}
	}
	return groups, resources, failed, nil
}

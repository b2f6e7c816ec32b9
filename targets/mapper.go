// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/targets/internal/limits"
)

const (
	// minDiscoveryInterval is the minimum time between a discovery and the next discovery that an unknown kind causes.
	minDiscoveryInterval = time.Second
	// A slow discovery is repeated less often, so that it takes at most a fifth of the time: after discoverySlowdown times
	// its duration, but at the latest after maxDiscoveryInterval.
	discoverySlowdown    = 4
	maxDiscoveryInterval = 10 * time.Second
)

// mapper is the RESTMapper of a target. It discovers the kinds when the client connects. When a kind is unknown, it
// discovers the kinds again, but at most once per second. If the discovery of a group fails, the kinds of the group
// stay known. The mapper returns an error for which meta.IsNoMatchError is true only if the last discovery was recent,
// and complete for the group of the kind. It is safe for concurrent use.
type mapper struct {
	ctx            context.Context // for methods without a context parameter; canceled with the client
	disco          discovery.DiscoveryInterfaceWithContext
	clk            clock.PassiveClock
	timeout        time.Duration
	countDiscovery func(error) // counts a discovery in the metrics
	changed        func()      // called when a known kind has another resource or scope, or is gone; may be nil
	kinds          *kindsCache // shares the kinds with other targets; may be nil

	discoveryLock sync.Mutex // held during a discovery

	mu       sync.RWMutex
	result   *discoveryResult
	failed   error     // the error of the last discovery, or nil
	next     time.Time // the time from which an unknown kind may cause another discovery
	isForced bool      // set by Reset
}

// discover discovers the kinds of the target. If an API service does not respond, the kinds of its group stay as they
// are.
func (m *mapper) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.timeout, limits.ErrNoResponse)
	defer cancel()
	ctx, release := ReserveMemory(ctx)
	defer release()
	began := m.clk.Now()
	groups, lists, err := m.disco.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if partial {
		err = nil
	}
	m.countDiscovery(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	ended := m.clk.Now()
	m.next, m.isForced = ended.Add(min(max(discoverySlowdown*ended.Sub(began), minDiscoveryInterval), maxDiscoveryInterval)), false
	if err != nil {
		m.failed = fmt.Errorf("discover the kinds of the target: %w", err)
		return m.failed
	}
	before := m.result
	m.result, m.failed = before.update(groups, lists, failed, m.kinds), nil
	if m.changed != nil && m.result.hasChangedKinds(before) {
		m.changed()
	}
	return nil
}

// rediscover discovers the kinds again if the last discovery is old enough, or if there was none. The caller did not
// find a kind in tried, the result of a discovery. Concurrent calls share one discovery.
func (m *mapper) rediscover(tried *discoveryResult) error {
	m.discoveryLock.Lock()
	defer m.discoveryLock.Unlock()
	m.mu.RLock()
	due := m.result == tried && (m.isForced || !m.clk.Now().Before(m.next))
	failed := m.failed
	m.mu.RUnlock()
	if !due {
		return failed
	}
	return m.discover(m.ctx)
}

// Refresh discovers the kinds again, unless the last discovery is recent. It returns a number that identifies the last
// discovery.
func (m *mapper) Refresh(context.Context) (number uint64, err error) {
	if err := m.rediscover(m.getResult()); err != nil {
		return 0, err
	}
	return m.getResult().number, nil
}

// IsServed reports whether the last discovery contains a version of a group completely.
func (m *mapper) IsServed(version schema.GroupVersion) bool { return m.getResult().hasVersion(version) }

// CanRead reports whether the objects of a resource can be read.
func (m *mapper) CanRead(resource schema.GroupVersionResource) bool {
	return m.getResult().hasVerb(resource, "get")
}

func (m *mapper) getResult() *discoveryResult {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.result
}

// Reset makes the next unknown kind cause a discovery immediately. Call it, for example, when a
// CustomResourceDefinition is established.
func (m *mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isForced = true
}

// findMapping looks up a kind. If the kind is unknown, lookUp discovers the kinds again and then looks up the kind once
// more. If the discovery of the kind's group is incomplete, it returns an error that names the group.
func findMapping[T any](m *mapper, group string, look func(meta.RESTMapper) (T, error)) (T, error) {
	known := m.getResult()
	out, err := look(known)
	if !meta.IsNoMatchError(err) {
		return out, err
	}
	if failed := m.rediscover(known); failed != nil {
		return out, failed
	}
	newer := m.getResult()
	if newer != known {
		out, err = look(newer)
	}
	if meta.IsNoMatchError(err) {
		err = cmp.Or(newer.getFailure(group), err)
	}
	return out, err
}

func (m *mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return findMapping(m, r.Group, func(known meta.RESTMapper) (schema.GroupVersionKind, error) { return known.KindFor(r) })
}

func (m *mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return findMapping(m, r.Group, func(known meta.RESTMapper) ([]schema.GroupVersionKind, error) { return known.KindsFor(r) })
}

func (m *mapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return findMapping(m, r.Group, func(known meta.RESTMapper) (schema.GroupVersionResource, error) { return known.ResourceFor(r) })
}

func (m *mapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return findMapping(m, r.Group, func(known meta.RESTMapper) ([]schema.GroupVersionResource, error) { return known.ResourcesFor(r) })
}

func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return findMapping(m, gk.Group, func(known meta.RESTMapper) (*meta.RESTMapping, error) { return known.RESTMapping(gk, versions...) })
}

func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return findMapping(m, gk.Group, func(known meta.RESTMapper) ([]*meta.RESTMapping, error) { return known.RESTMappings(gk, versions...) })
}

func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return findMapping(m, "", func(known meta.RESTMapper) (string, error) { return known.ResourceSingularizer(resource) })
}

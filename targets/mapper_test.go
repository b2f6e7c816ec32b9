// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// fakeDiscovery is a target whose discovery returns one kind for each version.
type fakeDiscovery struct {
	discovery.DiscoveryInterfaceWithContext

	mu     sync.Mutex
	served map[string]string // the kind of each version
	stale  []string          // versions whose discovery fails
	down   error
	calls  int
	wait   func()
}

func (g *fakeDiscovery) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	if g.wait != nil {
		g.wait()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls++; g.down != nil {
		return nil, nil, g.down
	}
	failed := map[schema.GroupVersion]error{}
	for _, name := range g.stale {
		gv, _ := schema.ParseGroupVersion(name)
		failed[gv] = errors.New("is down")
	}
	all := map[string]*metav1.APIGroup{}
	var lists []*metav1.APIResourceList
	for name, kind := range g.served {
		gv, _ := schema.ParseGroupVersion(name)
		version := metav1.GroupVersionForDiscovery{GroupVersion: name, Version: gv.Version}
		if all[gv.Group] == nil {
			all[gv.Group] = &metav1.APIGroup{Name: gv.Group, PreferredVersion: version}
		}
		all[gv.Group].Versions = append(all[gv.Group].Versions, version)
		lists = append(lists, &metav1.APIResourceList{GroupVersion: name, APIResources: []metav1.APIResource{
			{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: kind != "Fan", Verbs: metav1.Verbs{"get"}},
		}})
	}
	if len(failed) > 0 {
		return slices.Collect(maps.Values(all)), lists, &discovery.ErrGroupDiscoveryFailed{Groups: failed}
	}
	return slices.Collect(maps.Values(all)), lists, nil
}

// newMapper returns a mapper that has discovered the kinds of the target once, and its clock.
func newMapper(t *testing.T, g *fakeDiscovery) (*mapper, *clocktesting.FakePassiveClock) {
	t.Helper()
	clk := clocktesting.NewFakePassiveClock(time.Now())
	m := &mapper{ctx: t.Context(), disco: g, clk: clk, timeout: time.Minute, countDiscovery: func(error) {}}
	if err := m.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m, clk
}

func newGroupKind(group, kind string) schema.GroupKind {
	return schema.GroupKind{Group: group, Kind: kind}
}

func TestMapper(t *testing.T) {
	pass := func(clk *clocktesting.FakePassiveClock, d time.Duration) { clk.SetTime(clk.Now().Add(d)) }
	lamp := newGroupKind("example.org", "Lamp")
	t.Run("the mapper keeps the kinds of a group whose discovery fails, and names the group [F70]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"v1": "ConfigMap", "example.org/v1": "Lamp"}}
		m, clk := newMapper(t, g)
		g.served, g.stale = map[string]string{"v1": "ConfigMap"}, []string{"example.org/v1"}
		pass(clk, time.Minute)
		if _, err := m.RESTMapping(newGroupKind("other.org", "Thing"), "v1"); !meta.IsNoMatchError(err) || g.calls != 2 {
			t.Errorf("got the error %v after %d discoveries, want no match after 2", err, g.calls)
		}
		if mapping, err := m.RESTMapping(lamp, "v1"); err != nil || mapping.Resource.Resource != "lamps" {
			t.Errorf("got the mapping %v and the error %v of a kind that was known", mapping, err)
		}
		_, err := m.RESTMapping(newGroupKind("example.org", "Fan"), "v1")
		if err == nil || meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "example.org/v1: is down") {
			t.Errorf("got the error %v for another kind of the group, want one that names the group", err)
		}
		version := schema.GroupVersion{Group: "example.org", Version: "v1"}
		if m.IsServed(version) || !m.IsServed(schema.GroupVersion{Version: "v1"}) {
			t.Errorf("got an incomplete version as served: %v", m.IsServed(version))
		}
	})
	t.Run("the mapper does not consider the first discovery complete [F70]", func(t *testing.T) {
		m, _ := newMapper(t, &fakeDiscovery{served: map[string]string{"v1": "ConfigMap"}, stale: []string{"example.org/v1"}})
		if _, err := m.RESTMapping(lamp, "v1"); err == nil || meta.IsNoMatchError(err) {
			t.Errorf("got the error %v, want one that names the group", err)
		}
	})
	t.Run("the mapper forgets the kinds of a complete discovery, and of large versions [F70]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"v1": "ConfigMap", "example.org/v1": "Lamp", "big.org/v1": strings.Repeat("x", maxKeptSize)}}
		m, clk := newMapper(t, g)
		g.served, g.stale = map[string]string{"v1": "ConfigMap"}, []string{"big.org/v1"}
		pass(clk, time.Minute)
		if _, err := m.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := m.RESTMapping(lamp, "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("got the error %v, want no match", err)
		}
		if got := m.getResult().listResources(schema.GroupVersion{Group: "big.org", Version: "v1"}); len(got) != 0 {
			t.Error("a version of more than 1 MiB is kept")
		}
	})
	t.Run("the mapper discovers an unknown kind after a second [F71]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"v1": "ConfigMap"}}
		m, clk := newMapper(t, g)
		g.served["example.org/v1"] = "Lamp"
		for range 3 {
			if _, err := m.RESTMapping(lamp, "v1"); !meta.IsNoMatchError(err) || g.calls != 1 {
				t.Errorf("got the error %v after %d discoveries, want no match after 1", err, g.calls)
			}
		}
		pass(clk, time.Second)
		if _, err := m.RESTMapping(lamp, "v1"); err != nil || g.calls != 2 {
			t.Errorf("got the error %v after %d discoveries, want a mapping after 2", err, g.calls)
		}
	})
	t.Run("the mapper discovers an unknown kind at once after a reset [F71]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"v1": "ConfigMap"}}
		m, _ := newMapper(t, g)
		g.served["example.org/v1"] = "Lamp"
		m.Reset()
		if _, err := m.RESTMapping(lamp, "v1"); err != nil || g.calls != 2 {
			t.Errorf("got the error %v after %d discoveries, want a mapping after 2", err, g.calls)
		}
	})
	t.Run("concurrent requests share a discovery [F71]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"v1": "ConfigMap"}}
		m, clk := newMapper(t, g)
		pass(clk, time.Second)
		all := sync.WaitGroup{}
		for range 20 {
			all.Go(func() { _, _ = m.RESTMapping(lamp, "v1") })
		}
		all.Wait()
		if g.calls != 2 {
			t.Errorf("got %d discoveries, want 2", g.calls)
		}
	})
	t.Run("a slow discovery is repeated less often [F71]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"v1": "ConfigMap"}}
		m, clk := newMapper(t, g)
		g.wait = func() { pass(clk, 2*time.Second) }
		pass(clk, time.Second)
		_, _ = m.RESTMapping(lamp, "v1")
		pass(clk, 7*time.Second)
		_, _ = m.RESTMapping(lamp, "v1")
		if g.calls != 2 {
			t.Errorf("got %d discoveries, want 2 within four times the duration of the second", g.calls)
		}
	})
	t.Run("a failed discovery is not repeated at once [F71]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"v1": "ConfigMap"}}
		m, clk := newMapper(t, g)
		g.down = errors.New("down")
		pass(clk, time.Second)
		for range 3 {
			if _, err := m.RESTMapping(lamp, "v1"); !errors.Is(err, g.down) || g.calls != 2 {
				t.Errorf("got the error %v after %d discoveries, want %v after 2", err, g.calls, g.down)
			}
		}
	})
	t.Run("the mapper reports a kind that changed or is gone, because it may return with another scope [F99]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"example.org/v1": "Fan"}}
		m, clk := newMapper(t, g)
		changes := 0
		m.changed = func() { changes++ }
		for served, want := range map[string]int{"Fan": 0, "Lamp": 1} {
			changes = 0
			g.served["example.org/v1"] = served
			pass(clk, time.Second)
			if _, err := m.Refresh(t.Context()); err != nil || changes != want {
				t.Errorf("%s: got %d reports and the error %v, want %d", served, changes, err, want)
			}
			g.served["example.org/v1"] = "Fan"
			pass(clk, time.Second)
			if _, err := m.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("the mapper refreshes a known kind whose scope has changed [F99]", func(t *testing.T) {
		g := &fakeDiscovery{served: map[string]string{"example.org/v1": "Fan"}}
		m, clk := newMapper(t, g)
		before, err := m.Refresh(t.Context())
		if err != nil || before != 1 {
			t.Errorf("got the discovery %d and the error %v, want the first one", before, err)
		}
		g.served["example.org/v1"] = "Lamp"
		pass(clk, time.Second)
		if after, err := m.Refresh(t.Context()); err != nil || after != 2 || !m.CanRead(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "lamps"}) {
			t.Errorf("got the discovery %d and the error %v, want the second one", after, err)
		}
	})
}

// fakeLookups is a RESTMapper that counts lookups of kinds.
type fakeLookups struct {
	meta.RESTMapper

	n int
}

func (l *fakeLookups) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	l.n++
	return l.RESTMapper.RESTMapping(gk, versions...)
}

func TestCachingMapper(t *testing.T) {
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	under := &fakeLookups{RESTMapper: known}
	m := &cachingMapper{RESTMapper: under}
	for range 3 {
		mapping, err := m.RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
		if err != nil || mapping.Resource.Resource != "configmaps" || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			t.Fatal(mapping, err)
		}
		mapping.Resource.Resource = "changed" // must change only the caller's copy
	}
	if under.n != 1 {
		t.Errorf("%d lookups of a known kind, want 1", under.n)
	}
	for range 2 {
		if _, err := m.RESTMapping(schema.GroupKind{Kind: "Other"}, "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("want no match, got %v", err)
		}
	}
	if under.n != 3 {
		t.Errorf("%d lookups, want each lookup of an unknown kind", under.n-1)
	}
}

func TestStatusSubresource(t *testing.T) {
	widgets := func(names ...string) []metav1.APIResource {
		var out []metav1.APIResource
		for _, name := range names {
			out = append(out, metav1.APIResource{Name: name, Kind: "Widget"})
		}
		return out
	}
	m := &mapper{clk: clock.RealClock{}, result: (*discoveryResult)(nil).update(
		[]*metav1.APIGroup{{Name: "example.org", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "example.org/v1", Version: "v1"}, {GroupVersion: "example.org/v2", Version: "v2"}}}},
		[]*metav1.APIResourceList{
			{GroupVersion: "example.org/v1", APIResources: widgets("widgets", "widgets/scale")},
			{GroupVersion: "example.org/v2", APIResources: widgets("widgets/status", "widgets")},
		}, nil, nil)}
	for version, want := range map[string]bool{"v1": false, "v2": true, "v3": false} {
		t.Run("the status subresource is known from the discovery of each version [F101]", func(t *testing.T) {
			gvk := schema.GroupVersionKind{Group: "example.org", Version: version, Kind: "Widget"}
			if got := m.HasStatusSubresource(gvk); got != want {
				t.Errorf("%s has a status subresource: %v, want %v", gvk, got, want)
			}
		})
	}
}

func TestKindsCache(t *testing.T) {
	list := func(kind string) []*restmapper.APIGroupResources {
		return []*restmapper.APIGroupResources{{
			Group:              metav1.APIGroup{Name: "example.org", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "example.org/v1", Version: "v1"}}},
			VersionedResources: map[string][]metav1.APIResource{"v1": {{Name: "widgets", Kind: kind}}},
		}}
	}
	t.Run("targets that serve the same kinds share them in memory [Sc1]", func(t *testing.T) {
		c := &kindsCache{}
		first, second, other := c.intern(list("Widget")), c.intern(list("Widget")), c.intern(list("Gadget"))
		if first != second || first == other {
			t.Errorf("want the same kinds for the same description only, got %p, %p and %p", first, second, other)
		}
		if mapping, err := other.RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"}, "v1"); err != nil || mapping.Resource.Resource != "widgets" {
			t.Errorf("RESTMapping(Gadget): %+v, %v", mapping, err)
		}
		runtime.KeepAlive(first)
	})
	t.Run("kinds that no target uses any more leave the memory [Sc1]", func(t *testing.T) {
		c := &kindsCache{}
		c.intern(list("Widget"))
		for deadline := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
			runtime.GC()
			c.mu.Lock()
			left := len(c.entries)
			c.mu.Unlock()
			if left == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d descriptions are left", left)
			}
		}
	})
}

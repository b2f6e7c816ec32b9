// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/internal/testtime"
)

// fakeTarget is a fake API server. The test determines for which verbs and namespaces it refuses requests.
type fakeTarget struct {
	*fake.FakeMetadataClient
	requests atomic.Int64
}

func newFakeTarget(t *testing.T, refuse func(verb, namespace string) error, objects ...apiruntime.Object) *fakeTarget {
	t.Helper()
	scheme := fake.NewTestScheme()
	must(t, metav1.AddMetaToScheme(scheme))
	tg := &fakeTarget{FakeMetadataClient: fake.NewSimpleMetadataClient(scheme, objects...)}
	tg.PrependReactor("*", "*", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		tg.requests.Add(1)
		err := refuse(a.GetVerb(), a.GetNamespace())
		return err != nil, nil, err
	})
	tg.PrependWatchReactor("*", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		tg.requests.Add(1)
		err := refuse(a.GetVerb(), a.GetNamespace())
		return err != nil, nil, err
	})
	return tg
}

func allowAll(string, string) error { return nil }

func newForbiddenFunc(where string) error {
	return apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("no right in "+where+"\nat all"))
}

// waitUntil polls a condition.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

func TestWatchFallsBackToNamespaces(t *testing.T) {
	missing := apierrors.NewNotFound(configMaps.GroupResource(), "")
	cases := map[string]struct {
		reason string
		refuse func(verb, namespace string) error
		want   Coverage
	}{
		"Cluster": {"all is allowed", allowAll, Coverage{Scope: ScopeCluster}},
		"Namespaces": {
			"only namespaces are allowed",
			func(_, ns string) error {
				if ns == "" {
					return newForbiddenFunc("all")
				}
				return nil
			},
			Coverage{Scope: ScopeNamespaces, Namespaces: []string{"a", "b"}, Message: `configmaps in the cluster: configmaps is forbidden: no right in all at all`},
		},
		"OneNamespace": {
			"one of two namespaces is allowed",
			func(_, ns string) error {
				if ns != "a" {
					return newForbiddenFunc(ns)
				}
				return nil
			},
			Coverage{Scope: ScopeNamespaces, Namespaces: []string{"a"}, Missing: []string{"b"}, Message: `configmaps in namespace b: configmaps is forbidden: no right in b at all`, Refused: true},
		},
		"ListWithoutWatch": {
			"to list is allowed, to watch is not: no polling by lists",
			func(verb, _ string) error {
				if verb == "watch" {
					return newForbiddenFunc("watches")
				}
				return nil
			},
			Coverage{Scope: ScopeNone, Missing: []string{"a", "b"}, Message: `configmaps in namespace b: configmaps is forbidden: no right in watches at all`, Refused: true},
		},
		"NoSuchKind": {
			"a kind that is not there or cannot be watched is not asked for by namespace",
			func(string, string) error { return missing },
			Coverage{Scope: ScopeNone, Missing: []string{"a", "b"}, Message: `configmaps in the cluster: configmaps "" not found`, NotServed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tg := newFakeTarget(t, tc.refuse)
			w := New(tg, Options{})
			w.Start(t.Context())
			// If the target allows lists but no watches, the Coverage of the first call may be too large. A later call
			// returns the right Coverage.
			var got Coverage
			waitUntil(t, tc.reason, func() bool {
				var err error
				got, err = w.Watch(t.Context(), configMaps, "b", "a", "", "a")
				must(t, err)
				return cmp.Equal(tc.want, got)
			})
			before := tg.requests.Load()
			again, err := w.Watch(t.Context(), configMaps, "a", "b")
			must(t, err)
			if diff := cmp.Diff(tc.want, again); diff != "" {
				t.Errorf("the second time (-want +got):\n%s", diff)
			}
			if asked := tg.requests.Load() - before; tc.want.Scope == ScopeNone && asked > 0 {
				t.Errorf("a refusal was not remembered: %d requests", asked)
			}
			for _, ns := range []string{"a", "b", ""} {
				want := tc.want.Scope == ScopeCluster || tc.want.Scope == ScopeNamespaces && (ns == "a" || ns == "b" && len(tc.want.Missing) == 0)
				if again.Contains(ns) != want {
					t.Errorf("Covers(%q) = %v", ns, !want)
				}
			}
		})
	}
}

// TestRefusedWatchIsRepeated ensures that a refused request is repeated later, and that the watch of the cluster then
// replaces the watches of namespaces.
func TestRefusedWatchIsRepeated(t *testing.T) {
	var open atomic.Bool
	tg := newFakeTarget(t, func(_, ns string) error {
		if ns == "" && !open.Load() {
			return newForbiddenFunc("all")
		}
		return nil
	})
	clk := clocktesting.NewFakeClock(start.Time)
	w := New(tg, Options{Clock: clk, IdleTimeout: time.Hour})
	w.Start(t.Context())
	watch := func() Coverage {
		c, err := w.Watch(t.Context(), configMaps, "a", "b")
		must(t, err)
		return c
	}
	if c := watch(); c.Scope != ScopeNamespaces {
		t.Fatalf("%+v", c)
	}
	open.Store(true)
	if c := watch(); c.Scope != ScopeNamespaces {
		t.Errorf("asked again too soon: %+v", c)
	}
	clk.SetTime(clk.Now().Add(10 * time.Minute))
	if c := watch(); c.Scope != ScopeCluster {
		t.Errorf("%+v", c)
	}
	waitUntil(t, "the watches of namespaces end", func() bool { return w.opts.Limit.CountOpenWatches() == 1 && w.GetStats().Watches == 1 })
}

// TestNamespaceWatchIsUsedUntilTheClusterIsListed ensures that the watch of a namespace is used until the watch of the
// cluster has received its first list.
func TestNamespaceWatchIsUsedUntilTheClusterIsListed(t *testing.T) {
	w, whole, l := newTestWatcher(t)
	one := addStore(w, newStoredScope(configMaps, "shop"))
	must(t, one.Replace([]any{newObject(withOwnFields(both))}, "10"))
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both)))})
	must(t, one.Update(newObject(withOwnFields(both), withVersion("11"))))
	must(t, one.Delete(newObject(withVersion("12"))))
	if got := l.listLines(); len(got) != 1 {
		t.Errorf("the namespace's watch was not heard: %v", got)
	}
	must(t, whole.Replace(nil, "13"))
	for range 2 { // late events of the source that has ended are ignored
		must(t, one.Update(newObject(withVersion("14"))))
		must(t, one.Delete(newObject(withVersion("15"))))
		must(t, one.Replace([]any{newObject(withVersion("16"))}, "16"))
	}
	if got := l.listLines(); got != nil || w.GetStats().Objects != 0 || w.GetStats().Watches != 1 {
		t.Errorf("%v, %+v", got, w.GetStats())
	}
}

func TestLimit(t *testing.T) {
	limit := NewLimit(1)
	first, second := New(newFakeTarget(t, allowAll), Options{Limit: limit}), New(newFakeTarget(t, allowAll), Options{Limit: limit})
	ctx, cancel := context.WithCancel(t.Context())
	first.Start(ctx)
	second.Start(t.Context())
	watch := func(w *Watcher) Coverage {
		c, err := w.Watch(t.Context(), configMaps, "a")
		must(t, err)
		return c
	}
	if c := watch(first); c.Scope != ScopeCluster {
		t.Fatalf("%+v", c)
	}
	want := Coverage{Scope: ScopeNone, Missing: []string{"a"}, Message: "configmaps in the cluster: the limit of 1 watches is reached"}
	if diff := cmp.Diff(want, watch(second)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	cancel()
	first.Wait()
	if c := watch(second); c.Scope != ScopeCluster {
		t.Errorf("the other one has ended: %+v", c)
	}
}

func TestIdleWatchesEnd(t *testing.T) {
	clk := clocktesting.NewFakeClock(start.Time)
	w := New(newFakeTarget(t, allowAll), Options{Clock: clk})
	w.Start(t.Context())
	_, err := w.Watch(t.Context(), configMaps)
	must(t, err)
	w.SetBaseline(item, []BaselineObject{{Object: settings}})
	clk.SetTime(clk.Now().Add(time.Hour))
	w.Forget("else")
	if w.GetStats().Watches != 1 {
		t.Error("a watch that is needed ended")
	}
	w.Forget(item)
	waitUntil(t, "the watch ends", func() bool { return w.GetStats().Watches == 0 && w.opts.Limit.CountOpenWatches() == 0 })
}

// TestWatchOfAnUnreachableTarget covers a target that refuses connections. Watch must return within SyncTimeout, and no
// goroutine may remain.
func TestWatchOfAnUnreachableTarget(t *testing.T) {
	tg := newFakeTarget(t, func(string, string) error { return syscall.ECONNREFUSED })
	w := New(tg, Options{SyncTimeout: testtime.ScaleTimeout(200 * time.Millisecond)})
	ctx, cancel := context.WithCancel(t.Context())
	before := runtime.NumGoroutine()
	w.Start(ctx)
	for range 2 {
		c, err := w.Watch(t.Context(), configMaps, "a")
		must(t, err)
		if c.Scope != ScopeNone || !strings.Contains(c.Message, "connection refused") {
			t.Errorf("%+v", c)
		}
	}
	cancel()
	w.Wait()
	waitUntil(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// TestWatcherStopsWithItsContext ensures that no goroutine outlives the context of Start.
func TestWatcherStopsWithItsContext(t *testing.T) {
	before := runtime.NumGoroutine()
	w := New(newFakeTarget(t, allowAll, newObject()), Options{})
	if c, err := w.Watch(t.Context(), configMaps); err != nil || c.Message != "configmaps in the cluster: the watcher is not started" {
		t.Errorf("%+v, %v", c, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.Start(ctx)
	_, err := w.Watch(t.Context(), configMaps)
	must(t, err)
	if _, ok := w.Get(configMaps, settings.NamespacedName); !ok {
		t.Error("not seen")
	}
	cancel()
	w.Wait()
	waitUntil(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	if _, ok := w.Get(configMaps, settings.NamespacedName); ok {
		t.Error("known after the end")
	}
	if c, err := w.Watch(t.Context(), configMaps, "a"); err != nil || c.Scope != ScopeNone {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestWatchReturnsTheErrorOfItsContext ensures that Watch returns the error of the caller's context and no other error.
func TestWatchReturnsTheErrorOfItsContext(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	w := New(newFakeTarget(t, func(string, string) error { <-release; return nil }), Options{})
	w.Start(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c, err := w.Watch(ctx, configMaps)
	if !errors.Is(err, context.DeadlineExceeded) || c.Scope != ScopeNone {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestLossOfAWatchIsReportedToItsItems checks that the items that expect objects of a watch are notified when the
// target refuses to continue it [F70]. Without this, an item that is finished would not notice that changes by other
// writers are not detected any more.
func TestLossOfAWatchIsReportedToItsItems(t *testing.T) {
	w, whole, _ := newTestWatcher(t)
	must(t, whole.Replace([]any{newObject(withOwnFields(both))}, "10"))
	var lost []types.UID
	stop := w.OnWatchLost(func(item types.UID) { lost = append(lost, item) })
	w.SetBaseline(item, []BaselineObject{newOwned(newObject(withOwnFields(both)))})
	w.SetBaseline("elsewhere", []BaselineObject{{Object: Object{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, settings.NamespacedName}}})
	if err := whole.recordAnswer(t.Context(), errNoWatch); !errors.Is(err, errNoWatch) || lost != nil {
		t.Fatalf("after an error that is no refusal: %v, lost %v", err, lost)
	}
	refused := apierrors.NewNotFound(configMaps.GroupResource(), "")
	if err := whole.recordAnswer(t.Context(), refused); !errors.Is(err, refused) {
		t.Fatalf("error %v, want the refusal", err)
	}
	if diff := cmp.Diff([]types.UID{item}, lost); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	again := addStore(w, newStoredScope(configMaps, ""))
	must(t, again.Replace([]any{newObject(withOwnFields(both))}, "10"))
	stop()
	if _ = again.recordAnswer(t.Context(), refused); len(lost) != 1 {
		t.Errorf("notified after the end of the registration: %v", lost)
	}
}

// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/targets"
)

// newHostileServer starts a server for a test.
func newHostileServer(t *testing.T, behaviours ...hostile.Behaviour) *hostile.Server {
	t.Helper()
	s := hostile.New(behaviours...)
	t.Cleanup(s.Close)
	return s
}

func newConfigMaps(single bool) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind("ConfigMap")
	if !single {
		obj.SetKind("ConfigMapList")
	}
	return obj
}

func newNamedConfigMap(name string) *unstructured.Unstructured {
	obj := newConfigMaps(true)
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}

// expectLimitError requires a LimitError with the given option.
func expectLimitError(t *testing.T, err error, option string) {
	t.Helper()
	over, ok := errors.AsType[*targets.LimitError](err)
	if !ok || over.Option != option || option != "" && !strings.Contains(err.Error(), "targets.Limits."+option) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line that names the option %q", err, option)
	}
}

func TestTooLargeResponsesAreRejected(t *testing.T) {
	key := client.ObjectKey{Namespace: "default", Name: "a"}
	read := func(ctx context.Context, c client.Client) error { return c.Get(ctx, key, newConfigMaps(true)) }
	typed := func(ctx context.Context, c client.Client) error { return c.Get(ctx, key, &corev1.ConfigMap{}) }
	list := func(ctx context.Context, c client.Client) error {
		return c.List(ctx, &unstructured.UnstructuredList{Object: newConfigMaps(false).Object})
	}
	typedList := func(ctx context.Context, c client.Client) error { return c.List(ctx, &corev1.ConfigMapList{}) }
	metadataList := func(ctx context.Context, c client.Client) error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(newConfigMaps(false).GroupVersionKind())
		return c.List(ctx, list)
	}
	write := func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, newNamedConfigMap("a"))
	}
	for name, tc := range map[string]struct {
		behaviour hostile.Behaviour
		calls     []func(context.Context, client.Client) error
		option    string
	}{
		"a huge object [F2]":            {hostile.LargeObject(120 << 20), []func(context.Context, client.Client) error{read, typed, write}, "Object"},
		"a huge compressed object [F2]": {hostile.When(hostile.MatchAll, hostile.Gzip(), hostile.LargeObject(120<<20)), []func(context.Context, client.Client) error{read}, "Object"},
		"a huge list [F2]":              {hostile.LargeObject(120 << 20), []func(context.Context, client.Client) error{list}, "Page"},
		"endless pages [F2]":            {hostile.EndlessPages(100, 10_000), []func(context.Context, client.Client) error{list, typedList, metadataList}, "List"},
		"many small values [F2]":        {hostile.ManyValues(200_000), []func(context.Context, client.Client) error{read}, "Decoding"},
		"a very deep object [F2]":       {hostile.DeepObject(100_000), []func(context.Context, client.Client) error{read}, ""},
		"another format [F2]":           {hostile.ContentType("application/vnd.kubernetes.protobuf"), []func(context.Context, client.Client) error{read, typed}, ""},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			for i, call := range tc.calls {
				s := newHostileServer(t, hostile.When(hostile.Not(hostile.IsDiscovery), tc.behaviour))
				var limits targets.Limits
				switch tc.option { // with the race detector, a busy machine needs too long for the defaults
				case "Object":
					limits.Object = 1 << 20
				case "Page":
					limits.Page = 1 << 20
				case "Decoding":
					limits.Decoding = 16 << 20
				case "List":
					limits.List = 8 << 20 // eight pages
				}
				p := newPool(t, targets.PoolOptions{Limits: limits})
				c := getClient(t, p, newResolvedTarget("a", string(s.Kubeconfig("t"))))
				if tc.option == "" {
					t.Log(i, write(t.Context(), c))
				}
				expectLimitError(t, call(t.Context(), c), tc.option)
				if families := getMetrics(t, p); !strings.Contains(fmt.Sprint(families), "deployerkit_target_limits_total") {
					t.Errorf("the metric is missing in %v", families)
				}
			}
		})
	}
}

// TestConcurrentResponsesShareBudget checks that many concurrent responses take no more memory than a single response,
// if each of them is within the limits.
func TestConcurrentResponsesShareBudget(t *testing.T) {
	t.Run("share one budget, whatever their targets are [F2]", func(t *testing.T) {
		p := newPool(t, targets.PoolOptions{
			Limits:         targets.Limits{Decoding: 16 << 20},
			RequestTimeout: 5 * time.Minute, // also covers the time that a response waits for the budget
		})
		var clients []*targets.Client
		for i := range 10 {
			s := newHostileServer(t, hostile.When(hostile.Not(hostile.IsDiscovery), hostile.ManyValues(25_000)))
			clients = append(clients, getClient(t, p, newResolvedTarget(fmt.Sprintf("t%d", i), string(s.Kubeconfig("t")))))
		}
		runtime.GC()
		before, peak, stop := measurePeak(t)
		var wg sync.WaitGroup
		for _, c := range clients {
			for range 3 {
				wg.Go(func() {
					if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, newConfigMaps(true)); err != nil {
						t.Errorf("an answer within the limits: %v", err)
					}
				})
			}
		}
		wg.Wait()
		stop()
		if growth := peak.Load() - before; growth > 48<<20 { // without the budget, it is 90 MiB and more
			t.Errorf("the heap grew by %d MiB", growth>>20)
		}
	})
}

// measurePeak measures the size of the heap before it returns, and the peak until the function `stop` is called.
func measurePeak(t *testing.T) (before uint64, peak *atomic.Uint64, stop func()) {
	t.Helper()
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}} // unlike runtime.ReadMemStats, this does not stop the test
	metrics.Read(heap)
	before, peak = heap[0].Value.Uint64(), &atomic.Uint64{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			metrics.Read(heap)
			peak.Store(max(peak.Load(), heap[0].Value.Uint64()))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return before, peak, func() { cancel(); <-done }
}

// TestListsAreReadPageByPage checks that List returns all objects, and that it sends only one request if there is only
// one page.
func TestListsAreReadPageByPage(t *testing.T) {
	s := newHostileServer(t)
	c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", string(s.Kubeconfig("t"))))
	for i := range 3 {
		if err := c.Create(t.Context(), newNamedConfigMap(fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	lists := func(r hostile.Request) bool { return r.Method == "GET" && strings.HasSuffix(r.Path, "/configmaps") }
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 3 || s.CountRequests(lists) != 1 {
		t.Errorf("%d objects, %v, in %d requests", len(list.Items), err, s.CountRequests(lists))
	}
}

func TestTooLargeDiscovery(t *testing.T) {
	for name, aggregated := range map[string]bool{"aggregated [F3]": true, "one by one [F3]": false} {
		for _, count := range []int{1500, 200_000} {
			t.Run(fmt.Sprintf("refuses %d groups that are served %s", count, name), func(t *testing.T) {
				s := newHostileServer(t, hostile.AddGroups(count, aggregated))
				p := newPool(t, targets.PoolOptions{GetTimeout: 20 * time.Second, Limits: targets.Limits{Discovery: 2 << 20}})
				_, err := p.Get(t.Context(), newResolvedTarget("a", string(s.Kubeconfig("t"))))
				over, ok := errors.AsType[*targets.LimitError](err)
				if !ok || over.Option != "Groups" && over.Option != "Discovery" && over.Option != "Decoding" {
					t.Errorf("error %v, want one about a limit", err)
				}
				if n := s.CountRequests(nil); n > 10 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
	t.Run("sends at most 32 requests at a time [F3]", func(t *testing.T) {
		aGroup := func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/apis/g") }
		s := newHostileServer(t, hostile.When(aGroup, hostile.SendSlowly(100*time.Microsecond)), hostile.AddGroups(900, false))
		p := newPool(t, targets.PoolOptions{GetTimeout: 30 * time.Second})
		if _, err := p.Get(t.Context(), newResolvedTarget("a", string(s.Kubeconfig("t")))); err != nil {
			t.Errorf("900 groups: %v", err)
		}
		if n := s.MaxConcurrentRequests(); n > 32 {
			t.Errorf("%d requests at once", n)
		}
	})
	t.Run("refuses groups that are added later, when it discovers the capabilities [F3]", func(t *testing.T) {
		var grown atomic.Bool
		s := newHostileServer(t, hostile.When(func(*http.Request) bool { return grown.Load() }, hostile.AddGroups(1500, true)))
		c, err := newPool(t, targets.PoolOptions{GetTimeout: 20 * time.Second}).Get(t.Context(), newResolvedTarget("a", string(s.Kubeconfig("t"))))
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.DiscoverCapabilities(t.Context())
		if err != nil || found.Version != "v1.36.0" || len(found.Resources) != 1 {
			t.Errorf("got %+v and the error %v, want the resources of one group", found, err)
		}
		grown.Store(true)
		_, err = c.DiscoverCapabilities(t.Context())
		if over, ok := errors.AsType[*targets.LimitError](err); !ok || over.Option != "Groups" {
			t.Errorf("error %v, want one about the limit Groups", err)
		}
	})
}

// TestWatchWithTooManyEventsEnds checks that a watch with too many events ends, and that its target then counts as
// down.
func TestWatchWithTooManyEventsEnds(t *testing.T) {
	for name, tc := range map[string]struct{ from, option string }{
		"a watch without a version [F3]": {"", "WatchObjects"},
		"a watch from a version [F3]":    {"1", "WatchEvents"},
	} {
		t.Run("ends a watch "+name, func(t *testing.T) {
			s := newHostileServer(t, hostile.When(hostile.IsWatch, hostile.WatchEndlessly()))
			limits := targets.Limits{WatchObjects: 2000, WatchEvents: 100} // a busy machine must decode more events per second
			p := newPool(t, targets.PoolOptions{MinPause: time.Minute, Limits: limits})
			target := newResolvedTarget("a", string(s.Kubeconfig("t")))
			c := getClient(t, p, target)
			m, err := metadata.NewForConfigAndClient(c.Config(), c.HTTPClient())
			if err != nil {
				t.Fatal(err)
			}
			w, err := m.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Watch(t.Context(), metav1.ListOptions{ResourceVersion: tc.from})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			events, began := 0, time.Now()
			for e := range w.ResultChan() {
				if e.Type == "ERROR" {
					t.Logf("%+v", e.Object)
				}
				events++
			}
			// Besides the first objects, or the events of the first ten seconds, a watch may have 100 events per second.
			if took := time.Since(began); events < 900 || events > 2100+int(100*took.Seconds()) {
				t.Errorf("%d events came through in %s", events, took)
			}
			_, err = p.Get(t.Context(), target)
			expectLimitError(t, err, tc.option)
			if _, ok := errors.AsType[*targets.UnreachableError](err); !ok {
				t.Errorf("the target counts as healthy: %v", err)
			}
		})
	}
}

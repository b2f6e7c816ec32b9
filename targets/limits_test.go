// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
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

// hostileServer starts a server for a test.
func hostileServer(t *testing.T, behaviours ...hostile.Behaviour) *hostile.Server {
	t.Helper()
	s := hostile.New(behaviours...)
	t.Cleanup(s.Close)
	return s
}

func configMaps(single bool) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind("ConfigMap")
	if !single {
		obj.SetKind("ConfigMapList")
	}
	return obj
}

func named(name string) *unstructured.Unstructured {
	obj := configMaps(true)
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}

// wantLimit requires a LimitError with the given option.
func wantLimit(t *testing.T, err error, option string) {
	t.Helper()
	over, ok := errors.AsType[*targets.LimitError](err)
	if !ok || over.Option != option || option != "" && !strings.Contains(err.Error(), "targets.Limits."+option) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line that names the option %q", err, option)
	}
}

func TestTooLargeResponses(t *testing.T) {
	key := client.ObjectKey{Namespace: "default", Name: "a"}
	read := func(ctx context.Context, c client.Client) error { return c.Get(ctx, key, configMaps(true)) }
	typed := func(ctx context.Context, c client.Client) error { return c.Get(ctx, key, &corev1.ConfigMap{}) }
	list := func(ctx context.Context, c client.Client) error {
		return c.List(ctx, &unstructured.UnstructuredList{Object: configMaps(false).Object})
	}
	typedList := func(ctx context.Context, c client.Client) error { return c.List(ctx, &corev1.ConfigMapList{}) }
	metadataList := func(ctx context.Context, c client.Client) error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(configMaps(false).GroupVersionKind())
		return c.List(ctx, list)
	}
	write := func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, named("a"))
	}
	for name, tc := range map[string]struct {
		behaviour hostile.Behaviour
		calls     []func(context.Context, client.Client) error
		option    string
	}{
		"a huge object [F2]":            {hostile.Huge(120 << 20), []func(context.Context, client.Client) error{read, typed, write}, "Object"},
		"a huge compressed object [F2]": {hostile.When(hostile.All, hostile.Gzip(), hostile.Huge(120<<20)), []func(context.Context, client.Client) error{read}, "Object"},
		"a huge list [F2]":              {hostile.Huge(120 << 20), []func(context.Context, client.Client) error{list}, "Page"},
		"endless pages [F2]":            {hostile.EndlessPages(100, 10_000), []func(context.Context, client.Client) error{list, typedList, metadataList}, "List"},
		"many small values [F2]":        {hostile.Nodes(1_000_000), []func(context.Context, client.Client) error{read}, "Decoding"},
		"a very deep object [F2]":       {hostile.Deep(100_000), []func(context.Context, client.Client) error{read}, ""},
		"another format [F2]":           {hostile.ContentType("application/vnd.kubernetes.protobuf"), []func(context.Context, client.Client) error{read, typed}, ""},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			for i, call := range tc.calls {
				s := hostileServer(t, hostile.When(hostile.Not(hostile.Discovery), tc.behaviour))
				var limits targets.Limits
				if tc.option == "Object" {
					limits.Object = 1 << 20 // a busy machine cannot unzip 8 MiB in the time that a response may take
				}
				p := newPool(t, targets.PoolOptions{Limits: limits})
				c := get(t, p, resolved("a", string(s.Kubeconfig("t"))))
				if tc.option == "" {
					t.Log(i, write(t.Context(), c))
				}
				wantLimit(t, call(t.Context(), c), tc.option)
				if families := metrics(t, p); !strings.Contains(fmt.Sprint(families), "deployerkit_target_limits_total") {
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
		p := newPool(t, targets.PoolOptions{RequestTimeout: 5 * time.Minute}) // the timeout also covers the time that a response waits for the budget
		var clients []*targets.Client
		for i := range 10 {
			s := hostileServer(t, hostile.When(hostile.Not(hostile.Discovery), hostile.Nodes(150_000)))
			clients = append(clients, get(t, p, resolved(fmt.Sprintf("t%d", i), string(s.Kubeconfig("t")))))
		}
		runtime.GC()
		peak, stop := sample(t)
		var wg sync.WaitGroup
		for _, c := range clients {
			for range 3 {
				wg.Go(func() {
					if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, configMaps(true)); err != nil {
						t.Errorf("an answer within the limits: %v", err)
					}
				})
			}
		}
		wg.Wait()
		stop()
		if most := peak.Load(); most > 400<<20 {
			t.Errorf("the heap grew to %d MiB", most>>20)
		}
	})
}

// sample measures the peak size of the heap until the function `stop` is called.
func sample(t *testing.T) (peak *atomic.Uint64, stop func()) {
	t.Helper()
	peak = &atomic.Uint64{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return peak, func() { cancel(); <-done }
}

// TestLists checks that List returns all objects, and that it sends only one request if there is only one page.
func TestLists(t *testing.T) {
	s := hostileServer(t)
	c := get(t, newPool(t, targets.PoolOptions{}), resolved("a", string(s.Kubeconfig("t"))))
	for i := range 3 {
		if err := c.Create(t.Context(), named(fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	lists := func(r hostile.Request) bool { return r.Method == "GET" && strings.HasSuffix(r.Path, "/configmaps") }
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 3 || s.Count(lists) != 1 {
		t.Errorf("%d objects, %v, in %d requests", len(list.Items), err, s.Count(lists))
	}
}

func TestTooLargeDiscovery(t *testing.T) {
	for name, aggregated := range map[string]bool{"aggregated [F3]": true, "one by one [F3]": false} {
		for _, count := range []int{1500, 200_000} {
			t.Run(fmt.Sprintf("refuses %d groups that are served %s", count, name), func(t *testing.T) {
				s := hostileServer(t, hostile.Groups(count, aggregated))
				p := newPool(t, targets.PoolOptions{GetTimeout: 20 * time.Second})
				_, err := p.Get(t.Context(), resolved("a", string(s.Kubeconfig("t"))))
				over, ok := errors.AsType[*targets.LimitError](err)
				if !ok || over.Option != "Groups" && over.Option != "Discovery" && over.Option != "Decoding" {
					t.Errorf("error %v, want one about a limit", err)
				}
				if n := s.Count(nil); n > 10 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
	t.Run("sends at most 32 requests at a time [F3]", func(t *testing.T) {
		aGroup := func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/apis/g") }
		s := hostileServer(t, hostile.When(aGroup, hostile.Trickle(100*time.Microsecond)), hostile.Groups(900, false))
		p := newPool(t, targets.PoolOptions{GetTimeout: 30 * time.Second})
		if _, err := p.Get(t.Context(), resolved("a", string(s.Kubeconfig("t")))); err != nil {
			t.Errorf("900 groups: %v", err)
		}
		if n := s.MostAtOnce(); n > 32 {
			t.Errorf("%d requests at once", n)
		}
	})
}

// TestWatchWithTooManyEvents checks that a watch with too many events ends, and that its target then counts as down.
func TestWatchWithTooManyEvents(t *testing.T) {
	for name, tc := range map[string]struct{ from, option string }{
		"a watch without a version [F3]": {"", "WatchObjects"},
		"a watch from a version [F3]":    {"1", "WatchEvents"},
	} {
		t.Run("ends a watch "+name, func(t *testing.T) {
			s := hostileServer(t, hostile.When(hostile.Watches, hostile.Flood()))
			p := newPool(t, targets.PoolOptions{MinPause: time.Minute})
			target := resolved("a", string(s.Kubeconfig("t")))
			c := get(t, p, target)
			m, err := metadata.NewForConfigAndClient(c.Config(), c.HTTPClient())
			if err != nil {
				t.Fatal(err)
			}
			w, err := m.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Watch(t.Context(), metav1.ListOptions{ResourceVersion: tc.from})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			events := 0
			for e := range w.ResultChan() {
				if e.Type == "ERROR" {
					t.Logf("%+v", e.Object)
				}
				events++
			}
			if events < 9_000 || events > 35_000 {
				t.Errorf("%d events came through", events)
			}
			_, err = p.Get(t.Context(), target)
			wantLimit(t, err, tc.option)
			if _, ok := errors.AsType[*targets.UnreachableError](err); !ok {
				t.Errorf("the target counts as healthy: %v", err)
			}
		})
	}
}

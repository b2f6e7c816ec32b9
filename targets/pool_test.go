// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/targets"
)

func newPool(t *testing.T, o targets.PoolOptions) *targets.Pool {
	t.Helper()
	if !o.Policy.AllowPrivateHosts {
		o.Policy.AllowPrivateHosts = true
	}
	if o.GetTimeout == 0 {
		o.GetTimeout = 10 * time.Second
	}
	p := targets.NewPool(o)
	t.Cleanup(p.Close)
	return p
}

func getClient(t *testing.T, p *targets.Pool, target *lsv1alpha1.ResolvedTarget) *targets.Client {
	t.Helper()
	c, err := p.Get(t.Context(), target)
	if err != nil {
		t.Fatalf("Get %s: %v", target.Name, err)
	}
	return c
}

// use makes one call to the target.
func use(ctx context.Context, c *targets.Client) error {
	return c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "cm"}, &corev1.ConfigMap{})
}

func isDone(c *targets.Client) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func TestPoolSharesClients(t *testing.T) {
	api := newAPI(t, "t1", "t2")
	p := newPool(t, targets.PoolOptions{})
	var wg sync.WaitGroup
	seen := make([]*targets.Client, 100)
	for i := range seen {
		wg.Go(func() {
			c, err := p.Get(t.Context(), newResolvedTarget(fmt.Sprintf("target-%d", i%10), api.newContent(t, "t1")))
			if err == nil {
				err = use(t.Context(), c)
			}
			if seen[i] = c; err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, c := range seen {
		if c != seen[0] {
			t.Fatal("targets with the same content have different clients")
		}
	}
	if api.getCount("/api") != 1 || api.getCount("/apis") != 1 {
		t.Errorf("%d and %d discoveries, want 1 each", api.getCount("/api"), api.getCount("/apis"))
	}
	if other := getClient(t, p, newResolvedTarget("other", api.newContent(t, "t2"))); other == seen[0] {
		t.Error("targets with different credentials share a client")
	}
	got := getMetrics(t, p)
	for series, want := range map[string]float64{
		`deployerkit_target_clients{up}`: 2, `deployerkit_target_clients{down}`: 0, `deployerkit_target_clients{connecting}`: 0,
		`deployerkit_target_discoveries_total{ok}`: 2, `deployerkit_target_client_events_total{created}`: 2,
		`deployerkit_target_requests_total{2xx,GET}`: 2*2 + 100,
	} {
		if got[series] != want {
			t.Errorf("%s = %v, want %v", series, got[series], want)
		}
	}
}

// getMetrics returns the values of all metrics of a pool. Each key consists of the name of the metric and the values of
// the labels.
func getMetrics(t *testing.T, p *targets.Pool) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(p); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := make([]string, 0, len(metric.GetLabel()))
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			out[fmt.Sprintf("%s{%s}", family.GetName(), strings.Join(labels, ","))] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return out
}

func TestPoolRotatesCredentials(t *testing.T) {
	api := newAPI(t, "old")
	p := newPool(t, targets.PoolOptions{})
	c := getClient(t, p, newResolvedTarget("a", api.newContent(t, "old")))
	release, ok := c.Pin()
	if !ok {
		t.Fatal("cannot pin")
	}
	defer release()
	api.accept("new")
	if err := use(t.Context(), c); !apierrors.IsUnauthorized(err) {
		t.Fatalf("with the old token: %v", err)
	}
	if again := getClient(t, p, newResolvedTarget("a", api.newContent(t, "new"))); again != c {
		t.Error("new credentials made another client")
	}
	if err := use(t.Context(), c); err != nil {
		t.Errorf("with the new token: %v", err)
	}
	if isDone(c) || api.getCount("/api") != 1 {
		t.Errorf("done %t, %d discoveries, want a client that goes on", isDone(c), api.getCount("/api"))
	}
}

func TestPoolDoesNotRotateSharedClients(t *testing.T) {
	api := newAPI(t, "old", "new")
	elsewhere := newAPI(t, "new")
	p := newPool(t, targets.PoolOptions{})
	shared := getClient(t, p, newResolvedTarget("a", api.newContent(t, "old")))
	getClient(t, p, newResolvedTarget("b", api.newContent(t, "old")))
	moved := getClient(t, p, newResolvedTarget("a", api.newContent(t, "new")))
	if moved == shared {
		t.Fatal("target b got the credentials of target a")
	}
	if getClient(t, p, newResolvedTarget("b", api.newContent(t, "new"))) != moved || !isDone(shared) {
		t.Error("the last target did not follow, or the unused client goes on")
	}
	t.Run("creates another client for another server", func(t *testing.T) {
		api.accept("only")
		here := getClient(t, p, newResolvedTarget("alone", api.newContent(t, "only")))
		if getClient(t, p, newResolvedTarget("alone", elsewhere.newContent(t, "new"))) == here || !isDone(here) {
			t.Error("another server, but the same client")
		}
	})
	t.Run("creates another client for a Target that only has the same name", func(t *testing.T) {
		elsewhere.accept("first", "other")
		first := getClient(t, p, newResolvedTarget("c", elsewhere.newContent(t, "first")))
		namesake := newResolvedTarget("c", elsewhere.newContent(t, "other"))
		namesake.UID = "another"
		if getClient(t, p, namesake) == first {
			t.Error("a new Target took over the client of a deleted one")
		}
	})
}

func TestPoolEvictsUnusedClients(t *testing.T) {
	api := newAPI(t, "t0", "t1", "t2", "t3")
	p := newPool(t, targets.PoolOptions{MaxClients: 2})
	clients := map[string]*targets.Client{}
	take := func(name string) *targets.Client {
		clients[name] = getClient(t, p, newResolvedTarget(name, api.newContent(t, name)))
		return clients[name]
	}
	release, _ := take("t0").Pin()
	take("t1")
	take("t2")
	if isDone(clients["t0"]) || !isDone(clients["t1"]) || isDone(clients["t2"]) {
		t.Error("want t1 gone: t0 is pinned, t2 is new")
	}
	if err := use(t.Context(), clients["t1"]); err != nil {
		t.Errorf("who holds a client that is gone cannot finish: %v", err)
	}
	if _, ok := clients["t1"].Pin(); ok {
		t.Error("a client that is gone can be pinned")
	}
	release()
	release()
	take("t2")
	take("t3")
	if !isDone(clients["t0"]) || isDone(clients["t2"]) {
		t.Error("want t0 gone: it is released and the oldest")
	}
}

func TestPoolKeepsPinnedClients(t *testing.T) {
	api := newAPI(t, "t0", "t1")
	p := newPool(t, targets.PoolOptions{MaxClients: 1})
	first := getClient(t, p, newResolvedTarget("t0", api.newContent(t, "t0")))
	releaseFirst, _ := first.Pin()
	second := getClient(t, p, newResolvedTarget("t1", api.newContent(t, "t1")))
	if isDone(first) || isDone(second) {
		t.Fatal("a client with watches, or the one that is handed out, is gone")
	}
	releaseFirst()
	if !isDone(first) || isDone(second) {
		t.Error("want the pool back at its size")
	}
}

func TestPoolDiscoversKindsRarely(t *testing.T) {
	api := newAPI(t, "t")
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	p := newPool(t, targets.PoolOptions{Clock: clk})
	c := getClient(t, p, newResolvedTarget("a", api.newContent(t, "t")))
	widget := schema.GroupKind{Group: "example.org", Kind: "Widget"}
	lookUp := func(found bool, discoveries int) {
		t.Helper()
		if _, err := c.RESTMapper().RESTMapping(widget, "v1"); (err == nil) != found || !found && !meta.IsNoMatchError(err) {
			t.Errorf("look up a Widget: %v", err)
		}
		if api.getCount("/apis") != discoveries {
			t.Errorf("%d discoveries, want %d", api.getCount("/apis"), discoveries)
		}
	}
	lookUp(false, 1)
	clk.SetTime(clk.Now().Add(10 * time.Second))
	lookUp(false, 2)
	api.set(func() { api.crd = true })
	lookUp(false, 2)
	meta.MaybeResetRESTMapper(c.RESTMapper())
	lookUp(true, 3)
	if _, err := c.RESTMapper().ResourceFor(schema.GroupVersionResource{Resource: "configmaps"}); err != nil {
		t.Error(err)
	}
}

// TestPoolReadsRefusedSecretsAgain checks that secrets are read again immediately after the first 401, and then at most
// every ten seconds.
func TestPoolReadsRefusedSecretsAgain(t *testing.T) {
	api := newAPI(t, "old")
	r, reader, clk := newTestResolver(map[string]string{"k": api.newContent(t, "old")})
	p := newPool(t, targets.PoolOptions{Resolver: r, Clock: clk})
	resolve := func() *lsv1alpha1.ResolvedTarget {
		found, err := r.Resolve(t.Context(), newTarget("creds", "k"))
		if err != nil {
			t.Fatal(err)
		}
		found.Target = newResolvedTarget("cluster-1", "").Target
		return found
	}
	c := getClient(t, p, resolve())
	refuse := func(reads int32) {
		t.Helper()
		if err := use(t.Context(), c); !apierrors.IsUnauthorized(err) {
			t.Fatalf("error %v, want unauthorized", err)
		}
		if resolve(); reader.gets.Load() != reads {
			t.Errorf("%d reads of the secret, want %d", reader.gets.Load(), reads)
		}
	}
	api.accept("new")
	refuse(2)
	refuse(2)
	clk.SetTime(clk.Now().Add(10 * time.Second))
	refuse(3)
	reader.set(map[string]string{"k": api.newContent(t, "new")}, nil)
	c.InvalidateCredentials()
	if getClient(t, p, resolve()) != c {
		t.Error("another client")
	}
	if err := use(t.Context(), c); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
}

// TestPoolReadsOldReferences tests the old form of secret references, for which the Go type of Landscaper no longer has
// a field.
func TestPoolReadsOldReferences(t *testing.T) {
	api := newAPI(t, "old", "new")
	bare := func(token string) string {
		return newKubeconfig(fmt.Sprintf("server: %q, certificate-authority-data: %s", api.URL, api.getCA()), "token: "+token, "")
	}
	r, reader, _ := newTestResolver(map[string]string{"kubeconfig": bare("old"), "other": bare("new")})
	p := newPool(t, targets.PoolOptions{Resolver: r})
	c := getClient(t, p, newResolvedTarget("a", `{"kubeconfig":{"secretRef":{"name":"creds"}}}`))
	if getClient(t, p, newResolvedTarget("b", `{"kubeconfig":{"secretRef":{"name":"creds","namespace":"garden","key":"kubeconfig"}}}`)) != c || reader.gets.Load() != 1 {
		t.Errorf("another client, or %d reads", reader.gets.Load())
	}
	if getClient(t, p, newResolvedTarget("c", `{"kubeconfig":{"secretRef":{"name":"creds","key":"other"}}}`)) == c {
		t.Error("the key is ignored")
	}
	for content, field := range map[string]string{
		`{"kubeconfig":{"secretRef":{"name":"creds","namespace":"elsewhere"}}}`: "kubeconfig.secretRef.namespace",
		`{"kubeconfig":{"secretRef":{"name":"` + canary + `"}}}`:                "kubeconfig.secretRef.name",
		`{"kubeconfig":{"secretRef":{"name":"creds","key":"a/b"}}}`:             "kubeconfig.secretRef.key",
		`{"kubeconfig":{"secretRef":{"name":"creds","x":1}}}`:                   "kubeconfig.secretRef",
		`{"kubeconfig":{"secretRef":{"name":"creds"},"users":[]}}`:              "kubeconfig",
		`{"kubeconfig":{"secretRef":"creds"}}`:                                  "kubeconfig.secretRef",
	} {
		expectConfigError(t, p, newResolvedTarget("d", content), field)
	}
	_, err := p.Get(t.Context(), newResolvedTarget("e", `{"kubeconfig":{"secretRef":{"name":"creds","key":"missing"}}}`))
	if fault, ok := errors.AsType[*targets.ResolveError](err); !ok || fault.Reason != targets.ReasonContentInvalid {
		t.Errorf("missing key: %v", err)
	}
	expectConfigError(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", `{"kubeconfig":{"secretRef":{"name":"creds"}}}`), "kubeconfig.secretRef")
	foreign := newPool(t, targets.PoolOptions{Resolver: r, Policy: targets.Policy{AllowForeignSecrets: true}})
	_, err = foreign.Get(t.Context(), newResolvedTarget("f", `{"kubeconfig":{"secretRef":{"name":"creds","namespace":"elsewhere"}}}`))
	if fault, ok := errors.AsType[*targets.ResolveError](err); !ok || fault.Reason != targets.ReasonSecretMissing {
		t.Errorf("foreign secret, allowed but missing: %v", err)
	}
}

func expectConfigError(t *testing.T, p *targets.Pool, target *lsv1alpha1.ResolvedTarget, field string) {
	t.Helper()
	_, err := p.Get(t.Context(), target)
	fault, ok := errors.AsType[*targets.ConfigError](err)
	if !ok || fault.Field != field {
		t.Errorf("content %s: error %v, want one of field %s", target.Content, err, field)
		return
	}
	mustHideCanary(t, err)
}

// TestPoolReadsContent tests every form of content that Landscaper supports.
func TestPoolReadsContent(t *testing.T) {
	api := newAPI(t, "t")
	bare := newKubeconfig(fmt.Sprintf("server: %q, certificate-authority-data: %s", api.URL, api.getCA()), "token: t", "")
	p := newPool(t, targets.PoolOptions{})
	first := getClient(t, p, newResolvedTarget("first", api.newContent(t, "t")))
	forms := map[string]string{
		"a kubeconfig":                   bare,
		"a kubeconfig in YAML":           "kubeconfig: |\n  " + strings.ReplaceAll(bare, "\n", "\n  "),
		"an object":                      "other: 1\nkubeconfig:\n  " + strings.ReplaceAll(bare, "\n", "\n  "),
		"a string":                       fmt.Sprintf("%q", bare),
		"a kubeconfig beside oidcConfig": strings.TrimSuffix(api.newContent(t, "t"), "}") + `,"oidcConfig":{}}`,
		"a kubeconfig beside null":       strings.TrimSuffix(api.newContent(t, "t"), "}") + `,"selfConfig":null}`,
	}
	for name, content := range forms {
		t.Run("reads "+name, func(t *testing.T) {
			if getClient(t, p, newResolvedTarget(name, content)) != first {
				t.Error("is read in another way")
			}
		})
	}
	other := newResolvedTarget("other", `{"region":"eu"}`)
	other.Spec.Type = "example.com/other"
	expectConfigError(t, p, other, "type")
	expectConfigError(t, p, &lsv1alpha1.ResolvedTarget{}, "target")
	expectConfigError(t, p, nil, "target")
	expectConfigError(t, p, newResolvedTarget("empty", ""), "config")
	expectConfigError(t, p, newResolvedTarget("null", "null"), "config")
	expectConfigError(t, p, newResolvedTarget("twice", `{"kubeconfig":"a","kubeconfig":"`+canary+`"}`), "config")
	expectConfigError(t, p, newResolvedTarget("case", `{"Kubeconfig":"`+canary+`"}`), "kubeconfig")
}

// TestOtherTargetTypesAreResolved checks that Targets of other types can be resolved, and are rejected only if a client
// is requested.
func TestOtherTargetTypesAreResolved(t *testing.T) {
	t.Run("does not read a kubeconfig in a Target of another type [H-8]", func(t *testing.T) {
		r, _, _ := newTestResolver(nil)
		for _, content := range []string{`{"region":"eu"}`, `["a"]`, `"text"`, `{"users":"eu","clusters":3}`} {
			other := newInlineTarget(content)
			other.Spec.Type = "example.com/other"
			if got, err := r.Resolve(t.Context(), other); err != nil || got.Content != content {
				t.Errorf("Resolve(%s) = %v, %v", content, got, err)
			}
		}
	})
}

func TestClientConfigHoldsNoCredentials(t *testing.T) {
	api := newAPI(t, canary)
	c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, canary)))
	if text := fmt.Sprintf("%+v %#v", c.Config(), *c.Config()); strings.Contains(text, canary) {
		t.Error("the configuration shows the token")
	}
	other, err := client.New(c.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "cm"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("a client of one's own: %v", err)
	}
}

// TestHostileServer tests responses and redirects of a hostile server.
func TestHostileServer(t *testing.T) {
	t.Run("cannot show the token in an error", func(t *testing.T) {
		api := newAPI(t, canary)
		c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, canary)))
		api.accept()
		err := use(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), "who is [redacted]?") {
			t.Errorf("error %v, want the one of the server without the token", err)
		}
		mustHideCanary(t, err)
	})
	t.Run("cannot show the token in an invalid response", func(t *testing.T) {
		api := newAPI(t, canary)
		api.handle = func(w http.ResponseWriter, r *http.Request) bool {
			fmt.Fprint(w, r.Header.Get("Authorization"))
			return true
		}
		_, err := newPool(t, targets.PoolOptions{}).Get(t.Context(), newResolvedTarget("a", api.newContent(t, canary)))
		mustHideCanary(t, err)
	})
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprintf("cannot redirect a client with the code %d", code), func(t *testing.T) {
			trap, api := newAPI(t, canary), newAPI(t, canary)
			c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, canary)))
			api.set(func() {
				api.handle = func(w http.ResponseWriter, r *http.Request) bool {
					http.Redirect(w, r, trap.URL+r.URL.Path, code)
					return true
				}
			})
			if err := use(t.Context(), c); !errors.Is(err, targets.ErrRedirect) {
				t.Errorf("error %v, want ErrRedirect", err)
			}
			cm := &corev1.ConfigMap{}
			cm.Namespace, cm.Name = "default", "cm"
			if err := c.Create(t.Context(), cm); !errors.Is(err, targets.ErrRedirect) {
				t.Errorf("error %v of a write, want ErrRedirect", err)
			}
			if len(trap.sentTokens) > 0 {
				t.Error("the redirect was followed")
			}
		})
	}
	t.Run("cannot make a client wait for long", func(t *testing.T) {
		api := newAPI(t, canary)
		calls := 0
		api.handle = func(w http.ResponseWriter, _ *http.Request) bool {
			if calls++; calls > 1 {
				return false
			}
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("a", api.newContent(t, canary)))
	})
}

// TestDialGuardRejectsPrivateAddresses checks that a host name is rejected if it resolves to a forbidden address.
func TestDialGuardRejectsPrivateAddresses(t *testing.T) {
	api := newAPI(t)
	cfg, err := targets.RESTConfigFromKubeconfig([]byte(newKubeconfig(okCluster, okUser, "")), targets.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	address := api.Listener.Addr().String()
	_, port, _ := strings.Cut(address, ":")
	for _, target := range []string{address, "localhost:" + port} {
		conn, err := cfg.Dial(t.Context(), "tcp", target)
		if _, ok := errors.AsType[*targets.ConfigError](err); !ok {
			t.Errorf("dial %s: %v, %v, want a ConfigError", target, conn, err)
		}
	}
	if cfg, err = targets.RESTConfigFromKubeconfig([]byte(newKubeconfig(okCluster, okUser, "")), loosePolicy); err != nil {
		t.Fatal(err)
	}
	conn, err := cfg.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("dial although allowed: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestWatchesOutliveTheRequestTimeout checks that the timeout applies only until the headers of a watch have arrived.
func TestWatchesOutliveTheRequestTimeout(t *testing.T) {
	api := newAPI(t, "t")
	timeout := testtime.ScaleTimeout(300 * time.Millisecond)
	c := getClient(t, newPool(t, targets.PoolOptions{RequestTimeout: timeout}), newResolvedTarget("a", api.newContent(t, "t")))
	more := make(chan struct{})
	api.set(func() {
		api.handle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("watch") == "" {
				return false
			}
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-more
			fmt.Fprint(w, "late")
			return true
		}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/api/v1/configmaps?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.HTTPClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	time.AfterFunc(2*timeout, func() { close(more) })
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "late" {
		t.Errorf("the watch ended with %q, %v", body, err)
	}
}

func TestPoolStopsWithContext(t *testing.T) {
	api := newAPI(t, "t")
	before := runtime.NumGoroutine()
	p := targets.NewPool(targets.PoolOptions{Policy: loosePolicy, GetTimeout: 10 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	c := getClient(t, p, newResolvedTarget("a", api.newContent(t, "t")))
	if err := use(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !isDone(c) {
		t.Error("the client goes on")
	}
	if _, err := p.Get(t.Context(), newResolvedTarget("a", api.newContent(t, "t"))); !errors.Is(err, targets.ErrClosed) {
		t.Errorf("Get after the end: %v", err)
	}
	if err := use(t.Context(), c); !errors.Is(err, targets.ErrClosed) {
		t.Errorf("a request after the end: %v", err)
	}
	p.Close()
	api.CloseClientConnections()
	deadline := time.After(10 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); runtime.NumGoroutine() > before; {
		select {
		case <-tick.C:
		case <-deadline:
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

// TestTriggersDoNotShortenTheBackoff drives all kinds of triggers of each layer at 50 Hz against a failing item, for
// hours: timers, polls and resyncs of one hour, changes that a watch reports, a kind that cannot be watched,
// corrections, calls of Trigger, and the triggers of failed runs, which are put back.
func TestTriggersDoNotShortenTheBackoff(t *testing.T) {
	for name, layer := range listLayers() {
		for place, background := range map[string]bool{"in the background": true, "in a job": false} {
			t.Run(name+" "+place+": no kind of trigger starts a run before the backoff of a failed item has passed [F65]", func(t *testing.T) {
				l := newLayerEnv(t, layer)
				l.triggerRepeatedly(rand.New(rand.NewPCG(uint64(len(name)), 65)), background) //nolint:gosec // not for secrets
				l.checkRuns(background)
				l.checkWrites()
				l.checkRecovery()
			})
		}
	}
}

// layer creates the deployer of a layer. The deployer fails if the function `fails` returns true.
type layer struct {
	args   func(wrap func(http.RoundTripper) http.RoundTripper, fails func() bool) deployerlib.DeployerArgs
	config object
}

func listLayers() map[string]layer {
	policy := targets.Policy{AllowPrivateHosts: true}
	errBroken := errors.New("the licence server does not respond")
	children := func() []any {
		return []any{
			object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a", "namespace": ns}, "data": object{"key": "1"}},
			object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "b", "namespace": ns}, "data": object{"key": "1"}},
			object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "c", "namespace": ns}, "data": object{"key": "1"}},
			object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s", "namespace": ns}, "data": object{"key": "MQ=="}},
		}
	}
	manifests := []any{}
	for _, child := range children() {
		manifests = append(manifests, object{"manifest": child})
	}
	declared := func(fails func() bool, wrap func(http.RoundTripper) http.RoundTripper) deployerlib.DeployerArgs {
		handler := declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			if fails() {
				return nil, errBroken
			}
			return &declarative.SyncResponse{Children: children(), ResyncAfter: time.Hour}, nil
		})
		return declarative.Args(testName, testType, handler, declarative.Options{
			Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "v1", Kind: "Secret"}},
			Resync:   time.Hour, Targets: policy, WrapTransport: wrap,
		})
	}
	return map[string]layer{
		"Manifest": {
			args: func(wrap func(http.RoundTripper) http.RoundTripper, _ func() bool) deployerlib.DeployerArgs {
				return manifest.Args(nil, manifest.Options{Targets: policy, WrapTransport: wrap})
			},
			config: object{
				"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
				"manifests": manifests, "continuousReconcile": object{"every": "1h"},
			},
		},
		"Declarative": {
			args: func(wrap func(http.RoundTripper) http.RoundTripper, _ func() bool) deployerlib.DeployerArgs {
				return declared(func() bool { return false }, wrap)
			},
			config: object{"apiVersion": "v1", "kind": "Config"},
		},
		"DeclarativeHandler": {
			args: func(wrap func(http.RoundTripper) http.RoundTripper, fails func() bool) deployerlib.DeployerArgs {
				return declared(fails, wrap)
			},
			config: object{"apiVersion": "v1", "kind": "Config"},
		},
		"StateGraph": {
			args: func(wrap func(http.RoundTripper) http.RoundTripper, _ func() bool) deployerlib.DeployerArgs {
				return stategraph.Args(testName, testType, newGraph(children()), stategraph.Options{Resync: time.Hour, Targets: policy, WrapTransport: wrap})
			},
			config: object{"apiVersion": "v1", "kind": "Config"},
		},
	}
}

// newGraph returns a state graph whose components are the given objects.
func newGraph(objects []any) *stategraph.Graph {
	b := stategraph.NewBuilder()
	for _, one := range objects {
		obj := &unstructured.Unstructured{Object: one.(object)}
		make := func(context.Context) (*unstructured.Unstructured, error) { return obj.DeepCopy(), nil }
		b = b.Add(obj.GetName(), stategraph.Object(make, stategraph.WithListeners(stategraph.Watch(), stategraph.Timer(time.Hour), stategraph.Poll(time.Hour))))
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// layerManager is a manager that only starts Runnables.
type layerManager struct {
	manager.Manager
	ctx    context.Context
	target *fakeTarget
	client client.Client
	group  *sync.WaitGroup
}

func (m *layerManager) GetConfig() *rest.Config { return &rest.Config{Host: "https://10.0.0.1:6443"} }

func (m *layerManager) GetHTTPClient() *http.Client { return &http.Client{Transport: m.target} }

func (m *layerManager) GetRESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[string]meta.RESTScope{"Secret": meta.RESTScopeNamespace, "Namespace": meta.RESTScopeRoot} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), scope)
	}
	return mapper
}

func (m *layerManager) GetLogger() logr.Logger { return logr.Discard() }

func (m *layerManager) GetClient() client.Client { return m.client }

func (m *layerManager) GetAPIReader() client.Reader { return m.client }

func (m *layerManager) Add(r manager.Runnable) error {
	m.group.Go(func() { _ = r.Start(m.ctx) })
	return nil
}

// layerEnv is a world with the deployer of a layer, and a fake target.
type layerEnv struct {
	*testEnv
	target *fakeTarget
	fails  atomic.Bool
	writes int // before the first failure, like events
	events int
	runs   []layerRun // since the failure began
	due    time.Time  // when the item is due; zero if it is not
}

// layerRun is a run of the deployer.
type layerRun struct {
	began  time.Time
	failed bool
}

// recordingDeployer records the runs of a deployer.
type recordingDeployer struct {
	deployerlib.Deployer
	ended func(error)
}

func (r recordingDeployer) Unwrap() deployerlib.Deployer { return r.Deployer }

func (r recordingDeployer) Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	err := r.Deployer.Reconcile(ctx, lsCtx, di, target)
	r.ended(err)
	return err
}

// record records a run with its result.
func (l *layerEnv) record(err error) {
	_, _, waits := deployerlib.AsWait(err)
	failed := err != nil && !waits && !errors.Is(err, deployerlib.ErrUnchanged)
	l.runs = append(l.runs, layerRun{l.clock.Now(), failed})
}

// newLayerEnv returns a world in which the job of the item has succeeded.
func newLayerEnv(t *testing.T, layer layer) *layerEnv {
	t.Helper()
	l := &layerEnv{target: newFakeTarget()}
	configured := func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = toRaw(layer.config) }
	var inner deployerlib.Deployer
	l.testEnv = newTestEnv(t, append(newItems(withJob("1"), withTarget, configured), newClusterTarget(t, "target")), withArgs(func(args *deployerlib.DeployerArgs) {
		own := layer.args(func(http.RoundTripper) http.RoundTripper { return l.target }, l.fails.Load)
		inner = own.Deployer
		args.MinInterval = own.MinInterval
		args.Backoff = deployerlib.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Minute}
		args.Deployer = recordingDeployer{inner, l.record}
	}))
	useRuntime(t, inner, l.testEnv, l.target)
	l.waitForPhase(phases.Succeeded)
	return l
}

// newClusterTarget returns a Target that leads to the fake target.
func newClusterTarget(t *testing.T, name string) *lsv1alpha1.Target {
	t.Helper()
	kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],` +
		`"clusters":[{"name":"a","cluster":{"server":"https://10.0.0.1:6443"}}],"users":[{"name":"a","user":{"token":"t"}}]}`
	access, err := json.Marshal(object{"kubeconfig": kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	out := newTarget("mine")
	out.Name, out.Spec.Type, out.Spec.Configuration = name, targettypes.KubernetesClusterTargetType, lsv1alpha1.NewAnyJSONPointer(access)
	return out
}

// useRuntime gives a deployer the runtime of a world.
func useRuntime(t *testing.T, d deployerlib.Deployer, w *testEnv, target *fakeTarget) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	group := &sync.WaitGroup{}
	t.Cleanup(func() { stop(); group.Wait() })
	user, _ := d.(deployerlib.RuntimeUser)
	err := user.UseRuntime(w.WrapRuntime(deployerlib.Runtime{
		Landscaper: &layerManager{ctx: ctx, target: target, client: w.client, group: group}, Clock: w.clock,
		Targets: targets.NewResolver(w.client, w.clock, time.Minute), Recorder: events.NewFakeRecorder(100_000),
		Registerer: prometheus.NewRegistry(), Trigger: w.Trigger,
	}))
	if err != nil {
		t.Fatal(err)
	}
}

func TestDeployerReadsOtherTarget(t *testing.T) {
	t.Run("a Target that a custom check names is read once in a requested run [F106]", func(t *testing.T) {
		fake := newFakeTarget()
		settings := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a", "namespace": ns}, "data": object{"key": "1"}}
		config := object{
			"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
			"manifests": []any{object{"manifest": settings}},
			"readinessChecks": object{"custom": []any{object{
				"name": "is there", "targetName": "second",
				"resourceSelector": []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": ns}},
				"requirements":     []any{object{"jsonPath": ".data.key", "operator": "exists"}},
			}}},
		}
		deployer := manifest.Args(nil, manifest.Options{
			Targets:       targets.Policy{AllowPrivateHosts: true},
			WrapTransport: func(http.RoundTripper) http.RoundTripper { return fake },
		}).Deployer
		configured := func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = toRaw(config) }
		w := newDelayedCacheEnv(t, deployer, newItem(withJob("1"), withTarget, configured), newClusterTarget(t, "target"), newClusterTarget(t, "second"))
		useRuntime(t, deployer, w.testEnv, fake)
		for range 100 {
			if w.getItem().Status.JobIDFinished == "1" {
				break
			}
			w.clock.Step(time.Second)
			w.runAttempt()
		}
		if phase := w.getItem().Status.Phase; phase != phases.Succeeded {
			t.Fatalf("the phase is %s: %+v", phase, w.getItem().Status.LastError)
		}
		reads := slices.DeleteFunc(w.reads, func(read string) bool { return read != "*v1alpha1.Target second" })
		if len(reads) != 1 {
			t.Errorf("the job reads the other Target %d times", len(reads))
		}
	})
}

// waitForPhase reconciles the item until it has a phase.
func (l *layerEnv) waitForPhase(phase lsv1alpha1.DeployItemPhase) {
	l.t.Helper()
	for range 1000 {
		if l.getItem().Status.Phase == phase {
			return
		}
		l.reconcileNow()
		l.clock.Step(time.Second)
	}
	l.t.Fatalf("the phase is not %s: %+v", phase, l.getItem().Status)
}

// reconcileNow reconciles the item once, as if it were taken from the queue.
func (l *layerEnv) reconcileNow() {
	l.t.Helper()
	res := l.reconcile()
	l.due = time.Time{}
	if res.RequeueAfter > 0 {
		l.due = l.clock.Now().Add(res.RequeueAfter)
	}
}

// step advances the clock, and reconciles the item if it is due, or if the deployer has triggered it.
func (l *layerEnv) step(by time.Duration) {
	l.t.Helper()
	for end := l.clock.Now().Add(by); ; {
		next := end
		if !l.due.IsZero() && l.due.Before(end) {
			next = l.due
		}
		if wait := next.Sub(l.clock.Now()); wait > 0 {
			l.clock.Step(wait)
		}
		if l.due.IsZero() || l.due.After(l.clock.Now()) {
			break
		}
		l.reconcileNow()
	}
	l.reconcileNow() // as if each trigger of the deployer took the item from the queue
}

// triggerRepeatedly makes the item fail, and drives all triggers at 50 Hz in periods of a few seconds. Between these
// periods, hours pass with fewer triggers.
func (l *layerEnv) triggerRepeatedly(r *rand.Rand, background bool) {
	l.t.Helper()
	l.runs = nil
	l.fails.Store(true)
	l.writes, l.events = l.target.setQuotaExceeded(true)
	l.popRequests()
	l.target.delete("a")
	if !background {
		l.HandleEvent(l.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobID = "2" }))
	}
	value := 0
	trigger := func() {
		value++
		switch r.IntN(5) {
		case 0:
			l.target.setField("b", "flood", fmt.Sprint(value)) // a change that is not corrected
		case 1:
			l.target.setField("b", "key", fmt.Sprint(value)) // a change to correct
		case 2:
			l.target.delete("c")
		case 3:
			l.target.createAgain("c")
		case 4:
			l.Trigger(key)
		}
	}
	for end := l.clock.Now().Add(4 * time.Hour); l.clock.Now().Before(end); {
		for range 50 + r.IntN(200) {
			trigger()
			l.step(20 * time.Millisecond)
		}
		for range r.IntN(20) {
			l.step(time.Duration(r.Int64N(int64(2 * time.Minute))))
			trigger()
		}
	}
}

// checkRuns checks the times of all runs since the failure began.
func (l *layerEnv) checkRuns(background bool) {
	l.t.Helper()
	longest := 11 * time.Minute // with the jitter
	if !background {
		longest += 5 * time.Minute // the deadline of the job ends it between two attempts
	}
	failures := 0
	for i, run := range l.runs {
		if failures > 0 {
			backoff, gap := min(100*time.Millisecond<<min(failures-1, 20), 10*time.Minute), run.began.Sub(l.runs[i-1].began)
			if gap < backoff*9/10 || gap > longest {
				l.t.Fatalf("run %d starts %s after the one before, want %s, less the jitter, to %s", i, gap, backoff, longest)
			}
		}
		if failures++; !run.failed {
			failures = 0
		}
	}
	if failures < 30 || failures > 50 {
		l.t.Errorf("%d failures in a row in more than four hours, want 30 to 50", failures)
	}
}

// checkWrites checks the number of writes of all runs since the failure began.
func (l *layerEnv) checkWrites() {
	l.t.Helper()
	writes, events := l.target.setQuotaExceeded(true)
	if writes -= l.writes; writes > 4*len(l.runs) {
		l.t.Errorf("%d writes to the target in %d runs, want at most one for each of the four objects", writes, len(l.runs))
	}
	if events -= l.events; events < 1000 {
		l.t.Errorf("the watches reported only %d changes", events)
	}
	patches := 0
	for _, request := range l.popRequests() {
		if strings.HasPrefix(request, "patch") {
			patches++
		}
	}
	if patches > 3*len(l.runs) {
		l.t.Errorf("%d writes of the item in %d runs, want at most 3 in each", patches, len(l.runs))
	}
	l.t.Logf("%d runs, %d writes to the target and %d of the item, %d changes", len(l.runs), writes, patches, events)
}

// checkRecovery checks that the item is repaired after the failure has passed, at the latest after the longest backoff.
func (l *layerEnv) checkRecovery() {
	l.t.Helper()
	l.fails.Store(false)
	l.target.setQuotaExceeded(false)
	for range 12 {
		l.step(time.Minute)
	}
	if !l.target.has("a") {
		l.t.Error("the object is not created after the failure has passed")
	}
}

// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	testType = lsv1alpha1.DeployItemType("example.com/test")
	testName = "test.deployerkit.dev"
	ns       = "ns"
)

var (
	t0      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key     = types.NamespacedName{Namespace: ns, Name: "item"}
	errBoom = errors.New("boom")
)

// world contains an Engine with a fake deployer, a fake API server in memory, and a fake clock. Tests reconcile the
// item of a world step by step.
type world struct {
	*deployerlib.Engine
	t      *testing.T
	fake   *landscapertest.Fake
	hooks  *landscapertest.Recorder
	trace  *landscapertest.Trace
	clock  *testclock.FakeClock
	client client.WithWatch
	args   deployerlib.DeployerArgs

	mu       sync.Mutex
	requests []string                                            // "get", "patch" or "patch status" for each request
	fail     func(request string, obj client.Object) error       // called before a request; an error prevents the request
	lose     func(request string, obj client.Object) error       // called after a request; an error replaces the response
	serve    func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem // returns the version in the cache; nil if the cache contains the stored version
	warnings []string
	log      logr.Logger // the logger of the controller
}

// setup changes a world before its engine is made.
type setup func(w *world, args *deployerlib.DeployerArgs)

// newWorld returns a world with the given objects and the Context "default".
func newWorld(t *testing.T, objects []client.Object, setups ...setup) *world {
	t.Helper()
	w := &world{
		t: t, fake: landscapertest.NewFake(), hooks: &landscapertest.Recorder{}, trace: &landscapertest.Trace{},
		clock: testclock.NewFakeClock(t0), log: logr.Discard(),
	}
	scheme, err := landscapertest.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	lsCtx := &lsv1alpha1.Context{}
	lsCtx.Namespace, lsCtx.Name = ns, lsv1alpha1.DefaultContextName
	objects = append(objects, lsCtx)
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&lsv1alpha1.DeployItem{}).WithInterceptorFuncs(w.interceptors()).Build()
	args := deployerlib.DeployerArgs{
		Name: testName, Version: "v1", Type: testType, Deployer: w.fake, Clock: w.clock,
		Registerer: prometheus.NewRegistry(), Observe: w.trace.Observe,
	}
	for _, s := range setups {
		s(w, &args)
	}
	w.args = args
	w.boot()
	return w
}

// restart creates a new Engine without state in memory, like a new process.
func (w *world) restart() {
	w.t.Helper()
	w.args.Registerer = prometheus.NewRegistry()
	w.boot()
}

func (w *world) boot() {
	w.t.Helper()
	var err error
	w.Engine, err = deployerlib.NewEngine(w.args, deployerlib.Access{Client: w.client, Items: w.cached, Warn: w.warn})
	if err != nil {
		w.t.Fatal(err)
	}
}

// withHooks registers a hook named "hook" for the given types, or for all types if none is given. The hook returns nil
// unless w.on scripts another result.
func withHooks(hookTypes ...extension.HookType) setup {
	if len(hookTypes) == 0 {
		hookTypes = extension.HookTypes()
	}
	return func(w *world, _ *deployerlib.DeployerArgs) { w.fake.Hook(w.hooks.Hook("hook"), hookTypes...) }
}

// withArgs returns a setup that changes the arguments.
func withArgs(change func(*deployerlib.DeployerArgs)) setup {
	return func(_ *world, args *deployerlib.DeployerArgs) { change(args) }
}

// withSelector restricts the deployer to targets with the label env=mine.
func withSelector() setup {
	return withArgs(func(args *deployerlib.DeployerArgs) {
		args.TargetSelectors = []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{{Key: "env", Operator: "=", Values: []string{"mine"}}}}}
	})
}

// cached reads an item for the engine as if from the cache. The read is not recorded as a request.
func (w *world) cached(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := w.client.Get(quiet(ctx), key, di); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serve != nil {
		return w.serve(di), nil
	}
	return di, nil
}

type quietKey struct{}

// quiet returns a context for requests of the test itself, which are not recorded.
func quiet(ctx context.Context) context.Context { return context.WithValue(ctx, quietKey{}, true) }

// interceptors returns functions that record the requests for items, and that return errors as w.fail and w.lose
// specify.
func (w *world) interceptors() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return w.request(ctx, "get", obj, func() error { return c.Get(ctx, key, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.request(ctx, "patch", obj, func() error {
				if version, ok := fenceOf(p, obj); ok {
					return fenced(ctx, c, obj, version)
				}
				return c.Patch(ctx, obj, p, opts...)
			})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.request(ctx, "patch "+sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	}
}

// fenceOf reports whether a patch contains only a resourceVersion, and returns that resourceVersion.
func fenceOf(p client.Patch, obj client.Object) (string, bool) {
	data, err := p.Data(obj)
	body := map[string]map[string]any{}
	if err != nil || json.Unmarshal(data, &body) != nil || len(body) != 1 || len(body["metadata"]) != 1 {
		return "", false
	}
	version, ok := body["metadata"]["resourceVersion"].(string)
	return version, ok
}

// fenced executes a patch that contains only a resourceVersion. Like an API server, it does not change the object, and
// returns a conflict if the version is old. Without this function, the fake client would write the object.
func fenced(ctx context.Context, c client.Client, obj client.Object, version string) error {
	if err := c.Get(quiet(ctx), client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	if obj.GetResourceVersion() != version {
		return apierrors.NewConflict(lsv1alpha1.Resource("deployitems"), obj.GetName(), errors.New("old version"))
	}
	return nil
}

// request records a request and executes it with the function `do`. If w.fail returns an error, the request is not
// executed. If w.lose returns an error, that error replaces the response.
func (w *world) request(ctx context.Context, name string, obj client.Object, do func() error) error {
	if _, ok := obj.(*lsv1alpha1.DeployItem); !ok || ctx.Value(quietKey{}) != nil {
		return do()
	}
	w.mu.Lock()
	w.requests = append(w.requests, name)
	fail, lose := w.fail, w.lose
	w.mu.Unlock()
	if fail != nil {
		if err := fail(name, obj); err != nil {
			return err
		}
	}
	if err := do(); err != nil || lose == nil {
		return err
	}
	return lose(name, obj)
}

// warn records a warning event.
func (w *world) warn(_ *lsv1alpha1.DeployItem, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, reason+": "+message)
}

// pass makes one attempt on the item.
func (w *world) pass() deployerlib.Ended {
	w.t.Helper()
	return w.Pass(w.t.Context(), key)
}

// reconcile reconciles the item once, as if it were taken from the queue.
func (w *world) reconcile() reconcile.Result {
	w.t.Helper()
	res, err := w.Reconcile(logf.IntoContext(w.t.Context(), w.log), key)
	if err != nil {
		w.t.Fatalf("Reconcile returned an error, which it never does: %v", err)
	}
	return res
}

// stored returns the stored item, or nil if it does not exist.
func (w *world) stored() *lsv1alpha1.DeployItem {
	w.t.Helper()
	di := &lsv1alpha1.DeployItem{}
	err := w.client.Get(quiet(w.t.Context()), key, di)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return di
}

// update changes the stored item and its status, as another client would.
func (w *world) update(change func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	w.t.Helper()
	di := w.stored()
	if di.Annotations == nil {
		di.Annotations = map[string]string{}
	}
	change(di)
	status := di.DeepCopy()
	if err := w.client.Update(quiet(w.t.Context()), di); err != nil {
		w.t.Fatal(err)
	}
	status.ResourceVersion = di.ResourceVersion
	if err := w.client.Status().Update(quiet(w.t.Context()), status); err != nil {
		w.t.Fatal(err)
	}
	return w.stored()
}

// sent returns the requests since the last call.
func (w *world) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.requests
	w.requests = nil
	return out
}

// wantSent checks the requests since the last call of the method `sent` or of wantSent.
func (w *world) wantSent(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(strings.Join(want, ", "), strings.Join(w.sent(), ", ")); diff != "" {
		w.t.Errorf("requests about the item (-want +got):\n%s", diff)
	}
}

// actions returns the actions of all calls of the deployer so far.
func (w *world) actions() []contract.Action {
	out := []contract.Action{}
	for _, call := range w.fake.Calls(key) {
		out = append(out, call.Action)
	}
	return out
}

// wantCalls checks the actions of all calls of the deployer so far.
func (w *world) wantCalls(want ...contract.Action) {
	w.t.Helper()
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(w.actions())); diff != "" {
		w.t.Errorf("calls of the deployer (-want +got):\n%s", diff)
	}
}

// change changes an item before it is stored.
type change func(*lsv1alpha1.DeployItem)

// item returns an item of the type testType with a configuration.
func item(changes ...change) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: key.Name, UID: "uid-1", Generation: 1, Annotations: map[string]string{},
	}}
	di.Spec.Type = testType
	di.Spec.Configuration = raw(map[string]any{"apiVersion": "v1", "kind": "Config"})
	for _, c := range changes {
		c(di)
	}
	return di
}

func raw(v any) *runtime.RawExtension {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &runtime.RawExtension{Raw: data}
}

// The function `at` returns the time t0+d.
func at(d time.Duration) *metav1.Time {
	t := metav1.NewTime(t0.Add(d))
	return &t
}

// job sets a job that was not started yet.
func job(id string) change {
	return func(di *lsv1alpha1.DeployItem) {
		di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
		di.Status.JobID, di.Status.JobIDGenerationTime = id, at(0)
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: at(0)}
	}
}

// finishedJob sets a job that ended some time ago with the given phase.
func finishedJob(id string, phase lsv1alpha1.DeployItemPhase) change {
	return func(di *lsv1alpha1.DeployItem) {
		job(id)(di)
		di.Status.JobIDFinished, di.Status.Phase = id, phase
		di.Status.JobIDGenerationTime = at(-time.Hour)
		di.Status.LastReconcileTime = at(-time.Hour)
		di.Status.ObservedGeneration = di.Generation
		di.Status.Deployer = deployer()
	}
}

// finished sets the status of a run that ended some time ago with the given phase, under the annotation revision.
func finished(phase lsv1alpha1.DeployItemPhase) change {
	return func(di *lsv1alpha1.DeployItem) {
		di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
		di.Status.Phase, di.Status.ObservedGeneration = phase, di.Generation
		di.Status.LastReconcileTime = at(-time.Hour)
		di.Status.Deployer = deployer()
	}
}

// running sets the status of a run in progress, under the annotation revision. The parameter `since` is the start of
// the run relative to t0.
func running(since time.Duration) change {
	return func(di *lsv1alpha1.DeployItem) {
		finished(phases.Progressing)(di)
		di.Status.LastReconcileTime = at(since)
	}
}

// runningJob sets the status of a job in progress. The parameter `since` is the start of the run relative to t0.
func runningJob(id string, since time.Duration) change {
	return func(di *lsv1alpha1.DeployItem) {
		job(id)(di)
		di.Status.JobIDGenerationTime = at(since)
		di.Status.LastReconcileTime = at(since)
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: at(since), InitTime: at(since)}
		di.Status.Phase, di.Status.ObservedGeneration = phases.Progressing, di.Generation
		di.Status.Deployer = deployer()
	}
}

func deployer() lsv1alpha1.DeployerInformation {
	return lsv1alpha1.DeployerInformation{Identity: testName, Name: testName, Version: "v1"}
}

// deleted sets the deletion timestamp. A finalizer keeps the item from being removed.
func deleted(di *lsv1alpha1.DeployItem) {
	di.DeletionTimestamp = at(-time.Minute)
	if len(di.Finalizers) == 0 {
		di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
	}
}

// operation sets the operation annotation.
func operation(op lsv1alpha1.Operation) change {
	return func(di *lsv1alpha1.DeployItem) {
		di.Annotations[lsv1alpha1.OperationAnnotation] = string(op)
	}
}

// withTarget sets the target of the item to "target".
func withTarget(di *lsv1alpha1.DeployItem) {
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "target"}
}

// target returns the Target "target". The parameter `env` is the value of its label env.
func target(env string) *lsv1alpha1.Target {
	t := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "target", Labels: map[string]string{"env": env}}}
	t.Spec.Type = "example.com/target"
	t.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"a":"b"}`))
	return t
}

var phases = lsv1alpha1.DeployItemPhases

// result returns the result of a hook.
func result(abort bool, after time.Duration) *extension.HookResult {
	return &extension.HookResult{AbortReconcile: abort, ReconcileResult: reconcile.Result{RequeueAfter: after}}
}

// The method `on` sets the result and the error that the hook named "hook" returns when it is called for a hook type.
func (w *world) on(t extension.HookType, res *extension.HookResult, err error) {
	w.hooks.On("hook", t, landscapertest.Returns(res, err))
}

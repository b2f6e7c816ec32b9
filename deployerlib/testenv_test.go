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
	corev1 "k8s.io/api/core/v1"
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

// testEnv contains an Engine with a fake deployer, a fake API server in memory, and a fake clock. Tests reconcile the
// item of a world step by step.
type testEnv struct {
	*deployerlib.Engine
	t      *testing.T
	fake   *landscapertest.Fake
	hooks  *landscapertest.Recorder
	trace  *landscapertest.Trace
	clock  *testclock.FakeClock
	client client.WithWatch
	args   deployerlib.DeployerArgs

	mu              sync.Mutex
	requests        []string                                            // "get", "patch" or "patch status" for each request
	beforeRequest   func(request string, obj client.Object) error       // called before a request; an error prevents the request
	afterRequest    func(request string, obj client.Object) error       // called after a request; an error replaces the response
	transformCached func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem // returns the version in the cache; nil if the cache contains the stored version
	warnings        []string
	log             logr.Logger // the logger of the controller
}

// envOption changes a world before its engine is made.
type envOption func(w *testEnv, args *deployerlib.DeployerArgs)

// newTestEnv returns a world with the given objects and the Context "default".
func newTestEnv(t *testing.T, objects []client.Object, setups ...envOption) *testEnv {
	t.Helper()
	w := &testEnv{
		t: t, fake: landscapertest.NewFake(), hooks: &landscapertest.Recorder{}, trace: &landscapertest.Trace{},
		clock: testclock.NewFakeClock(t0), log: logr.Discard(),
	}
	lsCtx := &lsv1alpha1.Context{}
	lsCtx.Namespace, lsCtx.Name = ns, lsv1alpha1.DefaultContextName
	objects = append(objects, lsCtx)
	w.client = fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).
		WithStatusSubresource(&lsv1alpha1.DeployItem{}).WithInterceptorFuncs(w.newInterceptors()).Build()
	args := deployerlib.DeployerArgs{
		Name: testName, Version: "v1", Type: testType, Deployer: w.fake, Clock: w.clock,
		Registerer: prometheus.NewRegistry(), Observe: w.trace.Observe,
	}
	for _, s := range setups {
		s(w, &args)
	}
	w.args = args
	w.startEngine()
	return w
}

// newScheme returns a scheme with the kinds that the tests use, because a fake client needs time for each kind.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), lsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// startNewEngine creates a new Engine without state in memory, like a new process.
func (w *testEnv) startNewEngine() {
	w.t.Helper()
	w.args.Registerer = prometheus.NewRegistry()
	w.startEngine()
}

func (w *testEnv) startEngine() {
	w.t.Helper()
	var err error
	w.Engine, err = deployerlib.NewEngine(w.args, deployerlib.Access{Client: w.client, Items: w.getCached, Warn: w.recordWarning})
	if err != nil {
		w.t.Fatal(err)
	}
}

// withHooks registers a hook named "hook" for the given types, or for all types if none is given. The hook returns nil
// unless w.on scripts another result.
func withHooks(hookTypes ...extension.HookType) envOption {
	if len(hookTypes) == 0 {
		hookTypes = extension.AllHookTypes()
	}
	return func(w *testEnv, _ *deployerlib.DeployerArgs) {
		w.fake.RegisterHook(w.hooks.NewHook("hook"), hookTypes...)
	}
}

// withArgs returns a setup that changes the arguments.
func withArgs(change func(*deployerlib.DeployerArgs)) envOption {
	return func(_ *testEnv, args *deployerlib.DeployerArgs) { change(args) }
}

// withSelector restricts the deployer to targets with the label env=mine.
func withSelector() envOption {
	return withArgs(func(args *deployerlib.DeployerArgs) {
		args.TargetSelectors = []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{{Key: "env", Operator: "=", Values: []string{"mine"}}}}}
	})
}

// getCached reads an item for the engine as if from the cache. The read is not recorded as a request.
func (w *testEnv) getCached(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := w.client.Get(withoutRecording(ctx), key, di); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.transformCached != nil {
		return w.transformCached(di), nil
	}
	return di, nil
}

type unrecordedKey struct{}

// withoutRecording returns a context for requests of the test itself, which are not recorded.
func withoutRecording(ctx context.Context) context.Context {
	return context.WithValue(ctx, unrecordedKey{}, true)
}

// newInterceptors returns functions that record the requests for items, and that return errors as w.fail and w.lose
// specify.
func (w *testEnv) newInterceptors() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return w.recordRequest(ctx, "get", obj, func() error { return c.Get(ctx, key, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.recordRequest(ctx, "patch", obj, func() error {
				if version, ok := getCheckedVersion(p, obj); ok {
					return checkVersion(ctx, c, obj, version)
				}
				return c.Patch(ctx, obj, p, opts...)
			})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.recordRequest(ctx, "patch "+sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	}
}

// getCheckedVersion reports whether a patch contains only a resourceVersion, and returns that resourceVersion.
func getCheckedVersion(p client.Patch, obj client.Object) (string, bool) {
	data, err := p.Data(obj)
	body := map[string]map[string]any{}
	if err != nil || json.Unmarshal(data, &body) != nil || len(body) != 1 || len(body["metadata"]) != 1 {
		return "", false
	}
	version, ok := body["metadata"]["resourceVersion"].(string)
	return version, ok
}

// checkVersion executes a patch that contains only a resourceVersion. Like an API server, it does not change the
// object, and returns a conflict if the version is old. Without this function, the fake client would write the object.
func checkVersion(ctx context.Context, c client.Client, obj client.Object, version string) error {
	if err := c.Get(withoutRecording(ctx), client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	if obj.GetResourceVersion() != version {
		return apierrors.NewConflict(lsv1alpha1.Resource("deployitems"), obj.GetName(), errors.New("old version"))
	}
	return nil
}

// recordRequest records a request and executes it with the function `do`. If w.fail returns an error, the request is
// not executed. If w.lose returns an error, that error replaces the response.
func (w *testEnv) recordRequest(ctx context.Context, name string, obj client.Object, do func() error) error {
	if _, ok := obj.(*lsv1alpha1.DeployItem); !ok || ctx.Value(unrecordedKey{}) != nil {
		return do()
	}
	w.mu.Lock()
	w.requests = append(w.requests, name)
	fail, lose := w.beforeRequest, w.afterRequest
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

// recordWarning records a warning event.
func (w *testEnv) recordWarning(_ *lsv1alpha1.DeployItem, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, reason+": "+message)
}

// runAttempt makes one attempt on the item.
func (w *testEnv) runAttempt() deployerlib.AttemptResult {
	w.t.Helper()
	return w.RunAttempt(w.t.Context(), key)
}

// reconcile reconciles the item once, as if it were taken from the queue.
func (w *testEnv) reconcile() reconcile.Result {
	w.t.Helper()
	res, err := w.Reconcile(logf.IntoContext(w.t.Context(), w.log), key)
	if err != nil {
		w.t.Fatalf("Reconcile returned an error, which it never does: %v", err)
	}
	return res
}

// getItem returns the stored item, or nil if it does not exist.
func (w *testEnv) getItem() *lsv1alpha1.DeployItem {
	w.t.Helper()
	di := &lsv1alpha1.DeployItem{}
	err := w.client.Get(withoutRecording(w.t.Context()), key, di)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return di
}

// updateItem changes the stored item and its status, as another client would.
func (w *testEnv) updateItem(change func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	w.t.Helper()
	di := w.getItem()
	if di.Annotations == nil {
		di.Annotations = map[string]string{}
	}
	change(di)
	status := di.DeepCopy()
	if err := w.client.Update(withoutRecording(w.t.Context()), di); err != nil {
		w.t.Fatal(err)
	}
	status.ResourceVersion = di.ResourceVersion
	if err := w.client.Status().Update(withoutRecording(w.t.Context()), status); err != nil {
		w.t.Fatal(err)
	}
	return w.getItem()
}

// popRequests returns the requests since the last call.
func (w *testEnv) popRequests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.requests
	w.requests = nil
	return out
}

// expectRequests checks the requests since the last call of the method `sent` or of expectRequests.
func (w *testEnv) expectRequests(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(strings.Join(want, ", "), strings.Join(w.popRequests(), ", ")); diff != "" {
		w.t.Errorf("requests about the item (-want +got):\n%s", diff)
	}
}

// listActions returns the actions of all calls of the deployer so far.
func (w *testEnv) listActions() []contract.Action {
	out := []contract.Action{}
	for _, call := range w.fake.ListCalls(key) {
		out = append(out, call.Action)
	}
	return out
}

// expectCalls checks the actions of all calls of the deployer so far.
func (w *testEnv) expectCalls(want ...contract.Action) {
	w.t.Helper()
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(w.listActions())); diff != "" {
		w.t.Errorf("calls of the deployer (-want +got):\n%s", diff)
	}
}

// itemOption changes an item before it is stored.
type itemOption func(*lsv1alpha1.DeployItem)

// newItem returns an item of the type testType with a configuration.
func newItem(changes ...itemOption) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: key.Name, UID: "uid-1", Generation: 1, Annotations: map[string]string{},
	}}
	di.Spec.Type = testType
	di.Spec.Configuration = toRaw(map[string]any{"apiVersion": "v1", "kind": "Config"})
	for _, c := range changes {
		c(di)
	}
	return di
}

func toRaw(v any) *runtime.RawExtension {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &runtime.RawExtension{Raw: data}
}

// newTime returns the time t0+d.
func newTime(d time.Duration) *metav1.Time {
	t := metav1.NewTime(t0.Add(d))
	return &t
}

// withJob sets a job that was not started yet.
func withJob(id string) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
		di.Status.JobID, di.Status.JobIDGenerationTime = id, newTime(0)
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: newTime(0)}
	}
}

// withFinishedJob sets a job that ended some time ago with the given phase.
func withFinishedJob(id string, phase lsv1alpha1.DeployItemPhase) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		withJob(id)(di)
		di.Status.JobIDFinished, di.Status.Phase = id, phase
		di.Status.JobIDGenerationTime = newTime(-time.Hour)
		di.Status.LastReconcileTime = newTime(-time.Hour)
		di.Status.ObservedGeneration = di.Generation
		di.Status.Deployer = newDeployerInfo()
	}
}

// withFinishedRun sets the status of a run that ended some time ago with the given phase, under the annotation
// revision.
func withFinishedRun(phase lsv1alpha1.DeployItemPhase) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
		di.Status.Phase, di.Status.ObservedGeneration = phase, di.Generation
		di.Status.LastReconcileTime = newTime(-time.Hour)
		di.Status.Deployer = newDeployerInfo()
	}
}

// withRun sets the status of a run in progress, under the annotation revision. The parameter `since` is the start of
// the run relative to t0.
func withRun(since time.Duration) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		withFinishedRun(phases.Progressing)(di)
		di.Status.LastReconcileTime = newTime(since)
	}
}

// withRunningJob sets the status of a job in progress. The parameter `since` is the start of the run relative to t0.
func withRunningJob(id string, since time.Duration) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		withJob(id)(di)
		di.Status.JobIDGenerationTime = newTime(since)
		di.Status.LastReconcileTime = newTime(since)
		di.Status.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: newTime(since), InitTime: newTime(since)}
		di.Status.Phase, di.Status.ObservedGeneration = phases.Progressing, di.Generation
		di.Status.Deployer = newDeployerInfo()
	}
}

func newDeployerInfo() lsv1alpha1.DeployerInformation {
	return lsv1alpha1.DeployerInformation{Identity: testName, Name: testName, Version: "v1"}
}

// withDeletion sets the deletion timestamp. A finalizer keeps the item from being removed.
func withDeletion(di *lsv1alpha1.DeployItem) {
	di.DeletionTimestamp = newTime(-time.Minute)
	if len(di.Finalizers) == 0 {
		di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
	}
}

// withOperation sets the operation annotation.
func withOperation(op lsv1alpha1.Operation) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		di.Annotations[lsv1alpha1.OperationAnnotation] = string(op)
	}
}

// withTarget sets the target of the item to "target".
func withTarget(di *lsv1alpha1.DeployItem) {
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "target"}
}

// newTarget returns the Target "target". The parameter `env` is the value of its label env.
func newTarget(env string) *lsv1alpha1.Target {
	t := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "target", Labels: map[string]string{"env": env}}}
	t.Spec.Type = "example.com/target"
	t.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"a":"b"}`))
	return t
}

var phases = lsv1alpha1.DeployItemPhases

// newHookResult returns the result of a hook.
func newHookResult(abort bool, after time.Duration) *extension.HookResult {
	return &extension.HookResult{AbortReconcile: abort, ReconcileResult: reconcile.Result{RequeueAfter: after}}
}

// setHookResult sets the result and the error that the hook named "hook" returns when it is called for a hook type.
func (w *testEnv) setHookResult(t extension.HookType, res *extension.HookResult, err error) {
	w.hooks.SetHookAnswer("hook", t, landscapertest.ReturnResult(res, err))
}

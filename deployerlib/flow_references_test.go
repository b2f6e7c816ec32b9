// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// delayedCacheEnv is a world in which the watches of Targets and Contexts are delayed: the cache returns the objects in
// the field `shown`. A nil object does not exist in the cache. The field `reads` contains the objects that were read
// from the API server.
type delayedCacheEnv struct {
	*testEnv

	cached map[string]client.Object
	reads  []string
	faults map[string]error       // the errors of reads from the API server
	inputs []landscapertest.Input // the arguments of all calls of the deployer
}

// setAnswers makes the deployer record the arguments of each call and return err.
func (w *delayedCacheEnv) setAnswers(err error) {
	for _, action := range []contract.Action{contract.ActionReconcile, contract.ActionDelete} {
		w.fake.SetDefaultAnswer(action, func(_ context.Context, in landscapertest.Input) error {
			w.inputs = append(w.inputs, in)
			return err
		})
	}
}

// newDelayedCacheEnv returns a world with the given objects, and with a cache that contains the current version of each
// Target and Context.
func newDelayedCacheEnv(t *testing.T, deployer deployerlib.Deployer, objects ...client.Object) *delayedCacheEnv {
	t.Helper()
	w := &delayedCacheEnv{testEnv: newTestEnv(t, objects), cached: map[string]client.Object{}}
	if deployer == nil {
		deployer = w.fake
	}
	w.setAnswers(nil)
	get := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		shown, lags := w.cached[formatName(obj, key.Name)]
		switch {
		case !lags:
			return c.Get(ctx, key, obj, opts...)
		case shown == nil:
			return apierrors.NewNotFound(lsv1alpha1.Resource("objects"), key.Name)
		}
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(shown.DeepCopyObject()).Elem())
		return nil
	}
	read := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		w.reads = append(w.reads, formatName(obj, key.Name))
		if err := w.faults[formatName(obj, key.Name)]; err != nil {
			return err
		}
		return c.Get(ctx, key, obj, opts...)
	}
	var err error
	w.Engine, err = deployerlib.NewEngine(deployerlib.DeployerArgs{
		Name: testName, Version: "v1", Type: testType, Deployer: deployer, Clock: w.clock, Registerer: prometheus.NewRegistry(),
	}, deployerlib.Access{
		Client: interceptor.NewClient(w.client, interceptor.Funcs{Get: get}), Live: interceptor.NewClient(w.client, interceptor.Funcs{Get: read}),
		Warn: w.recordWarning, Items: w.getCached,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func formatName(obj client.Object, name string) string { return fmt.Sprintf("%T %s", obj, name) }

// keepCached makes the cache keep the current version of an object.
func (w *delayedCacheEnv) keepCached(obj client.Object, name string) {
	w.t.Helper()
	key, at := types.NamespacedName{Namespace: ns, Name: name}, formatName(obj, name)
	switch err := w.client.Get(w.t.Context(), key, obj); {
	case apierrors.IsNotFound(err):
		w.cached[at] = nil
	case err != nil:
		w.t.Fatal(err)
	default:
		w.cached[at] = obj
	}
}

// applyObject creates or updates an object at the API server.
func (w *delayedCacheEnv) applyObject(obj client.Object) {
	w.t.Helper()
	w.clock.Step(time.Second)
	err := w.client.Create(w.t.Context(), obj)
	if apierrors.IsAlreadyExists(err) {
		stored, _ := obj.DeepCopyObject().(client.Object)
		if err = w.client.Get(w.t.Context(), client.ObjectKeyFromObject(obj), stored); err == nil {
			obj.SetResourceVersion(stored.GetResourceVersion())
			err = w.client.Update(w.t.Context(), obj)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// runRequested requests a run of the item, and makes an attempt.
func (w *delayedCacheEnv) runRequested(change itemOption) deployerlib.AttemptResult {
	w.t.Helper()
	w.clock.Step(time.Second)
	w.HandleEvent(w.updateItem(change))
	w.clock.Step(time.Second)
	return w.runAttempt()
}

// expectReads checks what was read from the API server since the last call.
func (w *delayedCacheEnv) expectReads(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(w.reads)); diff != "" {
		w.t.Errorf("reads from the API server (-want +got):\n%s", diff)
	}
	w.reads = nil
}

const (
	theTarget  = "*v1alpha1.Target target"
	theContext = "*v1alpha1.Context default"
	theSecret  = "*v1.Secret kubeconfig"
)

// newTargetWithConfig returns the Target "target" with the given configuration.
func newTargetWithConfig(config string) *lsv1alpha1.Target {
	t := newTarget("any")
	t.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(config))
	return t
}

// newTargetWithSecret returns the Target "target", which refers to the Secret "kubeconfig".
func newTargetWithSecret() *lsv1alpha1.Target {
	t := newTarget("any")
	t.Spec.Configuration, t.Spec.SecretRef = nil, &lsv1alpha1.LocalSecretReference{Name: "kubeconfig", Key: "kubeconfig"}
	return t
}

// newKubeconfigSecret returns the Secret "kubeconfig" with the given content.
func newKubeconfigSecret(content string) *corev1.Secret {
	s := newExport("kubeconfig", "", "")
	s.Data = map[string][]byte{"kubeconfig": []byte(content)}
	return s
}

// newContext returns the Context "default" with the given repository context.
func newContext(repository string) *lsv1alpha1.Context {
	lsCtx := &lsv1alpha1.Context{}
	lsCtx.Namespace, lsCtx.Name = ns, lsv1alpha1.DefaultContextName
	lsCtx.ComponentVersionOverwritesReference = repository
	return lsCtx
}

// requests maps the name of each revision to a finished item and a function that requests its next run.
var requests = map[string]struct{ finished, next itemOption }{
	"annotation": {withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ReconcileOperation)},
	"jobID":      {withFinishedJob("1", phases.Succeeded), withNextJob},
}

func TestRunReadsCurrentReferences(t *testing.T) {
	for revision, tc := range requests {
		t.Run(revision+": a new run sees the Target that was changed before it, although the watch is delayed [F106]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(tc.finished, withTarget), newTargetWithConfig(`{"cluster":"old"}`))
			w.keepCached(&lsv1alpha1.Target{}, "target")
			w.applyObject(newTargetWithConfig(`{"cluster":"new"}`))
			w.runRequested(tc.next)
			w.expectContent(`{"cluster":"new"}`)
		})
		t.Run(revision+": a deletion sees the Target that was changed before it [F106]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(tc.finished, withTarget, tc.next, withDeletionNow), newTargetWithConfig(`{"cluster":"old"}`))
			w.keepCached(&lsv1alpha1.Target{}, "target")
			w.applyObject(newTargetWithConfig(`{"cluster":"new"}`))
			w.runAttempt()
			w.expectContent(`{"cluster":"new"}`)
		})
		t.Run(revision+": a new run sees the Target that was created before it [F106]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(tc.finished, withTarget))
			w.keepCached(&lsv1alpha1.Target{}, "target")
			w.applyObject(newTargetWithConfig(`{"cluster":"new"}`))
			w.runRequested(tc.next)
			w.expectContent(`{"cluster":"new"}`)
		})
		t.Run(revision+": a new run does not see a Target that was deleted before it [F106]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(tc.finished, withTarget), newTargetWithConfig(`{"cluster":"old"}`))
			w.keepCached(&lsv1alpha1.Target{}, "target")
			if err := w.client.Delete(t.Context(), newTarget("any")); err != nil {
				t.Fatal(err)
			}
			w.runRequested(tc.next)
			w.expectCalls()
		})
		t.Run(revision+": a new run sees the Secret of its Target that was changed before it [F106]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(tc.finished, withTarget), newTargetWithSecret(), newKubeconfigSecret("old"))
			w.runRequested(tc.next)
			w.expectContent("old")
			w.applyObject(newKubeconfigSecret("new"))
			w.runRequested(func(di *lsv1alpha1.DeployItem) { tc.next(di); di.Status.JobID += "b"; di.Generation++ })
			w.expectContent("old", "new")
		})
		t.Run(revision+": a new run sees the Context that was changed before it, although the watch is delayed [F106]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(tc.finished))
			w.keepCached(&lsv1alpha1.Context{}, lsv1alpha1.DefaultContextName)
			w.applyObject(newContext("new"))
			w.runRequested(tc.next)
			if len(w.inputs) != 1 || w.inputs[0].Context.ComponentVersionOverwritesReference != "new" {
				t.Errorf("the deployer received %+v", w.inputs)
			}
		})
		t.Run(revision+": each attempt of a run sees the same versions while the watch is delayed, with one read [F106]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(tc.finished, withTarget), newTargetWithConfig(`{"cluster":"old"}`))
			w.setAnswers(deployerlib.WaitFor("a pod", time.Second))
			w.keepCached(&lsv1alpha1.Target{}, "target")
			w.applyObject(newTargetWithConfig(`{"cluster":"new"}`))
			w.runRequested(tc.next)
			for range 2 {
				w.clock.Step(time.Minute)
				w.runAttempt()
			}
			w.expectContent(`{"cluster":"new"}`, `{"cluster":"new"}`, `{"cluster":"new"}`)
			w.expectReads(theTarget, theContext)
		})
	}
	t.Run("a version that the watch delivers later replaces the one that was read [F106]", func(t *testing.T) {
		w := newDelayedCacheEnv(t, nil, newItem(withJob("1"), withTarget), newTargetWithConfig(`{"cluster":"a"}`))
		w.setAnswers(deployerlib.WaitFor("a pod", time.Second))
		w.keepCached(&lsv1alpha1.Target{}, "target")
		w.applyObject(newTargetWithConfig(`{"cluster":"b"}`))
		w.runAttempt()
		w.applyObject(newTargetWithConfig(`{"cluster":"c"}`))
		w.keepCached(&lsv1alpha1.Target{}, "target")
		w.HandleTargetEvent(types.NamespacedName{Namespace: ns, Name: "target"})
		w.runAttempt()
		w.expectContent(`{"cluster":"b"}`, `{"cluster":"c"}`)
	})
}

// expectContent checks the contents of the Targets that the deployer received, in the order of the calls.
func (w *delayedCacheEnv) expectContent(want ...string) {
	w.t.Helper()
	got := []string{}
	for _, in := range w.inputs {
		got = append(got, in.Target.Content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("contents of the Target (-want +got):\n%s\nstatus %+v", diff, w.getItem().Status.LastError)
	}
}

// contextIgnorer is a deployer that does not read the Context.
type contextIgnorer struct{ deployerlib.Deployer }

func (contextIgnorer) IgnoresContext() {}

// contextFreeDeleter is a deployer whose Delete does not need the Context.
type contextFreeDeleter struct{ deployerlib.Deployer }

func (contextFreeDeleter) DeletesWithoutContext() {}

func TestDeletionWithoutContext(t *testing.T) {
	for name, tc := range map[string]struct {
		wrap    func(deployerlib.Deployer) deployerlib.Deployer
		deletes bool
	}{
		"calls Delete of a deployer that does not need it": {func(d deployerlib.Deployer) deployerlib.Deployer { return contextFreeDeleter{d} }, true},
		"calls Delete of a deployer that ignores it":       {func(d deployerlib.Deployer) deployerlib.Deployer { return contextIgnorer{d} }, true},
		"is an error for other deployers":                  {func(d deployerlib.Deployer) deployerlib.Deployer { return d }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDelayedCacheEnv(t, tc.wrap(landscapertest.NewFake()), newItem(withFinishedJob("1", phases.Succeeded), withNextJob, withTarget, withDeletion, func(di *lsv1alpha1.DeployItem) { di.Spec.Context = "missing" }), newTarget("any"))
			w.runAttempt()
			if gone := w.getItem() == nil; gone != tc.deletes {
				t.Errorf("the item is gone: %t, want %t", gone, tc.deletes)
			}
		})
	}
}

func TestNumberOfReferenceReads(t *testing.T) {
	t.Run("a run reads its Context, its Target and the Secret once [F106]", func(t *testing.T) {
		w := newDelayedCacheEnv(t, nil, newItem(withJob("1"), withTarget), newTargetWithSecret(), newKubeconfigSecret("a"))
		w.runAttempt()
		w.expectReads(theTarget, theSecret, theContext)
	})
	t.Run("a run reads no Context for a deployer that ignores it [F106]", func(t *testing.T) {
		fake := landscapertest.NewFake()
		w := newDelayedCacheEnv(t, contextIgnorer{fake}, newItem(withJob("1"), withTarget), newTarget("any"))
		w.runAttempt()
		w.expectReads(theTarget)
	})
	t.Run("a read is valid for each item that arrived before it [F106]", func(t *testing.T) {
		second := newItem(withJob("1"), withTarget)
		second.Name, second.UID = "second", "uid-2"
		w := newDelayedCacheEnv(t, nil, newItem(withJob("1"), withTarget), second, newTargetWithSecret(), newKubeconfigSecret("a"))
		w.HandleEvent(w.getItem())
		w.HandleEvent(second)
		w.clock.Step(time.Second)
		w.runAttempt()
		w.clock.Step(time.Second)
		w.RunAttempt(t.Context(), client.ObjectKeyFromObject(second))
		w.expectReads(theTarget, theSecret, theContext)
	})
	t.Run("an item without a due run reads nothing [F106]", func(t *testing.T) {
		w := newDelayedCacheEnv(t, nil, newItem(withFinishedJob("1", phases.Succeeded), withTarget), newTarget("any"))
		w.runAttempt()
		w.expectReads()
	})
	t.Run("a job that updateOnChangeOnly skips reads nothing [F106]", func(t *testing.T) {
		w := newDelayedCacheEnv(t, nil, newItem(withFinishedJob("1", phases.Succeeded), withNextJob, withTarget, func(di *lsv1alpha1.DeployItem) {
			di.Spec.UpdateOnChangeOnly = true
		}), newTarget("any"))
		w.runAttempt()
		w.expectReads()
	})
}

// newSecondTarget returns the Target "second" with the given configuration.
func newSecondTarget(config string) *lsv1alpha1.Target {
	t := newTargetWithConfig(config)
	t.Name = "second"
	return t
}

func TestRunReadsOtherTarget(t *testing.T) {
	const theSecond = "*v1alpha1.Target second"
	key := types.NamespacedName{Namespace: ns, Name: "second"}
	for revision, tc := range requests {
		t.Run(revision+": a new run sees another Target that was changed before it, with one read for all attempts [F106]", func(t *testing.T) {
			w := newDelayedCacheEnv(t, nil, newItem(tc.finished, withTarget), newTarget("any"), newSecondTarget(`{"cluster":"old"}`))
			var seen []string
			w.fake.SetDefaultAnswer(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
				other, err := w.WrapRuntime(deployerlib.Runtime{}).GetTarget(ctx, key)
				if err != nil {
					return err
				}
				seen = append(seen, string(other.Spec.Configuration.RawMessage))
				return deployerlib.WaitFor("a pod", time.Second)
			})
			w.keepCached(&lsv1alpha1.Target{}, "second")
			w.applyObject(newSecondTarget(`{"cluster":"new"}`))
			w.runRequested(tc.next)
			w.clock.Step(time.Minute)
			w.runAttempt()
			if diff := cmp.Diff([]string{`{"cluster":"new"}`, `{"cluster":"new"}`}, seen); diff != "" {
				t.Errorf("contents of the other Target (-want +got):\n%s", diff)
			}
			w.expectReads(theTarget, theContext, theSecond)
		})
	}
	t.Run("outside of a requested run, another Target is read from the cache [F106]", func(t *testing.T) {
		w := newDelayedCacheEnv(t, nil, newItem(withFinishedJob("1", phases.Succeeded)), newSecondTarget(`{}`))
		if _, err := w.WrapRuntime(deployerlib.Runtime{}).GetTarget(t.Context(), key); err != nil {
			t.Error(err)
		}
		w.expectReads()
	})
}

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

// delayed is a world in which the watches of Targets and Contexts are delayed: the cache returns the objects in the field
// `shown`. A nil object does not exist in the cache. The field `reads` contains the objects that were read from the API
// server.
type delayed struct {
	*world

	shown  map[string]client.Object
	reads  []string
	faults map[string]error       // the errors of reads from the API server
	inputs []landscapertest.Input // the arguments of all calls of the deployer
}

// answers makes the deployer record the arguments of each call and return err.
func (w *delayed) answers(err error) {
	for _, action := range []contract.Action{contract.ActionReconcile, contract.ActionDelete} {
		w.fake.Always(action, func(_ context.Context, in landscapertest.Input) error {
			w.inputs = append(w.inputs, in)
			return err
		})
	}
}

// newDelayed returns a world with the given objects, and with a cache that contains the current version of each Target
// and Context.
func newDelayed(t *testing.T, deployer deployerlib.Deployer, objects ...client.Object) *delayed {
	t.Helper()
	w := &delayed{world: newWorld(t, objects), shown: map[string]client.Object{}}
	if deployer == nil {
		deployer = w.fake
	}
	w.answers(nil)
	get := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		shown, lags := w.shown[nameOf(obj, key.Name)]
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
		w.reads = append(w.reads, nameOf(obj, key.Name))
		if err := w.faults[nameOf(obj, key.Name)]; err != nil {
			return err
		}
		return c.Get(ctx, key, obj, opts...)
	}
	var err error
	w.Engine, err = deployerlib.NewEngine(deployerlib.DeployerArgs{
		Name: testName, Version: "v1", Type: testType, Deployer: deployer, Clock: w.clock, Registerer: prometheus.NewRegistry(),
	}, deployerlib.Access{
		Client: interceptor.NewClient(w.client, interceptor.Funcs{Get: get}), Live: interceptor.NewClient(w.client, interceptor.Funcs{Get: read}),
		Warn: w.warn, Items: w.cached,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func nameOf(obj client.Object, name string) string { return fmt.Sprintf("%T %s", obj, name) }

// delay makes the cache keep the current version of an object.
func (w *delayed) delay(obj client.Object, name string) {
	w.t.Helper()
	key, at := types.NamespacedName{Namespace: ns, Name: name}, nameOf(obj, name)
	switch err := w.client.Get(w.t.Context(), key, obj); {
	case apierrors.IsNotFound(err):
		w.shown[at] = nil
	case err != nil:
		w.t.Fatal(err)
	default:
		w.shown[at] = obj
	}
}

// store creates or updates an object at the API server.
func (w *delayed) store(obj client.Object) {
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

// request requests a run of the item, and makes an attempt.
func (w *delayed) request(change change) deployerlib.Ended {
	w.t.Helper()
	w.clock.Step(time.Second)
	w.Event(w.update(change))
	w.clock.Step(time.Second)
	return w.pass()
}

// wantReads checks what was read from the API server since the last call.
func (w *delayed) wantReads(want ...string) {
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

// targetWith returns the Target "target" with the given configuration.
func targetWith(config string) *lsv1alpha1.Target {
	t := target("any")
	t.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(config))
	return t
}

// targetWithSecret returns the Target "target", which refers to the Secret "kubeconfig".
func targetWithSecret() *lsv1alpha1.Target {
	t := target("any")
	t.Spec.Configuration, t.Spec.SecretRef = nil, &lsv1alpha1.LocalSecretReference{Name: "kubeconfig", Key: "kubeconfig"}
	return t
}

// kubeconfig returns the Secret "kubeconfig" with the given content.
func kubeconfig(content string) *corev1.Secret {
	s := secret("kubeconfig", "", "")
	s.Data = map[string][]byte{"kubeconfig": []byte(content)}
	return s
}

// contextWith returns the Context "default" with the given repository context.
func contextWith(repository string) *lsv1alpha1.Context {
	lsCtx := &lsv1alpha1.Context{}
	lsCtx.Namespace, lsCtx.Name = ns, lsv1alpha1.DefaultContextName
	lsCtx.ComponentVersionOverwritesReference = repository
	return lsCtx
}

// requests maps the name of each revision to a finished item and a function that requests its next run.
var requests = map[string]struct{ finished, next change }{
	"annotation": {finished(phases.Succeeded), operation(lsv1alpha1.ReconcileOperation)},
	"jobID":      {finishedJob("1", phases.Succeeded), nextJob},
}

func TestRunReadsCurrentReferences(t *testing.T) {
	for revision, tc := range requests {
		t.Run(revision+": a new run sees the Target that was changed before it, although the watch is delayed [F106]", func(t *testing.T) {
			w := newDelayed(t, nil, item(tc.finished, withTarget), targetWith(`{"cluster":"old"}`))
			w.delay(&lsv1alpha1.Target{}, "target")
			w.store(targetWith(`{"cluster":"new"}`))
			w.request(tc.next)
			w.wantContent(`{"cluster":"new"}`)
		})
		t.Run(revision+": a deletion sees the Target that was changed before it [F106]", func(t *testing.T) {
			w := newDelayed(t, nil, item(tc.finished, withTarget, tc.next, deletedNow), targetWith(`{"cluster":"old"}`))
			w.delay(&lsv1alpha1.Target{}, "target")
			w.store(targetWith(`{"cluster":"new"}`))
			w.pass()
			w.wantContent(`{"cluster":"new"}`)
		})
		t.Run(revision+": a new run sees the Target that was created before it [F106]", func(t *testing.T) {
			w := newDelayed(t, nil, item(tc.finished, withTarget))
			w.delay(&lsv1alpha1.Target{}, "target")
			w.store(targetWith(`{"cluster":"new"}`))
			w.request(tc.next)
			w.wantContent(`{"cluster":"new"}`)
		})
		t.Run(revision+": a new run does not see a Target that was deleted before it [F106]", func(t *testing.T) {
			w := newDelayed(t, nil, item(tc.finished, withTarget), targetWith(`{"cluster":"old"}`))
			w.delay(&lsv1alpha1.Target{}, "target")
			if err := w.client.Delete(t.Context(), target("any")); err != nil {
				t.Fatal(err)
			}
			w.request(tc.next)
			w.wantCalls()
		})
		t.Run(revision+": a new run sees the Secret of its Target that was changed before it [F106]", func(t *testing.T) {
			w := newDelayed(t, nil, item(tc.finished, withTarget), targetWithSecret(), kubeconfig("old"))
			w.request(tc.next)
			w.wantContent("old")
			w.store(kubeconfig("new"))
			w.request(func(di *lsv1alpha1.DeployItem) { tc.next(di); di.Status.JobID += "b"; di.Generation++ })
			w.wantContent("old", "new")
		})
		t.Run(revision+": a new run sees the Context that was changed before it, although the watch is delayed [F106]", func(t *testing.T) {
			w := newDelayed(t, nil, item(tc.finished))
			w.delay(&lsv1alpha1.Context{}, lsv1alpha1.DefaultContextName)
			w.store(contextWith("new"))
			w.request(tc.next)
			if len(w.inputs) != 1 || w.inputs[0].Context.ComponentVersionOverwritesReference != "new" {
				t.Errorf("the deployer received %+v", w.inputs)
			}
		})
		t.Run(revision+": each attempt of a run sees the same versions while the watch is delayed, with one read [F106]", func(t *testing.T) {
			w := newDelayed(t, nil, item(tc.finished, withTarget), targetWith(`{"cluster":"old"}`))
			w.answers(deployerlib.WaitFor("a pod", time.Second))
			w.delay(&lsv1alpha1.Target{}, "target")
			w.store(targetWith(`{"cluster":"new"}`))
			w.request(tc.next)
			for range 2 {
				w.clock.Step(time.Minute)
				w.pass()
			}
			w.wantContent(`{"cluster":"new"}`, `{"cluster":"new"}`, `{"cluster":"new"}`)
			w.wantReads(theTarget, theContext)
		})
	}
	t.Run("a version that the watch delivers later replaces the one that was read [F106]", func(t *testing.T) {
		w := newDelayed(t, nil, item(job("1"), withTarget), targetWith(`{"cluster":"a"}`))
		w.answers(deployerlib.WaitFor("a pod", time.Second))
		w.delay(&lsv1alpha1.Target{}, "target")
		w.store(targetWith(`{"cluster":"b"}`))
		w.pass()
		w.store(targetWith(`{"cluster":"c"}`))
		w.delay(&lsv1alpha1.Target{}, "target")
		w.TargetEvent(types.NamespacedName{Namespace: ns, Name: "target"})
		w.pass()
		w.wantContent(`{"cluster":"b"}`, `{"cluster":"c"}`)
	})
}

// wantContent checks the contents of the Targets that the deployer received, in the order of the calls.
func (w *delayed) wantContent(want ...string) {
	w.t.Helper()
	got := []string{}
	for _, in := range w.inputs {
		got = append(got, in.Target.Content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("contents of the Target (-want +got):\n%s\nstatus %+v", diff, w.stored().Status.LastError)
	}
}

// ignorant is a deployer that does not read the Context.
type ignorant struct{ deployerlib.Deployer }

func (ignorant) IgnoresContext() {}

func TestNumberOfReferenceReads(t *testing.T) {
	t.Run("a run reads its Context, its Target and the Secret once [F106]", func(t *testing.T) {
		w := newDelayed(t, nil, item(job("1"), withTarget), targetWithSecret(), kubeconfig("a"))
		w.pass()
		w.wantReads(theTarget, theSecret, theContext)
	})
	t.Run("a run reads no Context for a deployer that ignores it [F106]", func(t *testing.T) {
		fake := landscapertest.NewFake()
		w := newDelayed(t, ignorant{fake}, item(job("1"), withTarget), target("any"))
		w.pass()
		w.wantReads(theTarget)
	})
	t.Run("a read is valid for each item that arrived before it [F106]", func(t *testing.T) {
		second := item(job("1"), withTarget)
		second.Name, second.UID = "second", "uid-2"
		w := newDelayed(t, nil, item(job("1"), withTarget), second, targetWithSecret(), kubeconfig("a"))
		w.Event(w.stored())
		w.Event(second)
		w.clock.Step(time.Second)
		w.pass()
		w.clock.Step(time.Second)
		w.Pass(t.Context(), client.ObjectKeyFromObject(second))
		w.wantReads(theTarget, theSecret, theContext)
	})
	t.Run("an item without a due run reads nothing [F106]", func(t *testing.T) {
		w := newDelayed(t, nil, item(finishedJob("1", phases.Succeeded), withTarget), target("any"))
		w.pass()
		w.wantReads()
	})
	t.Run("a job that updateOnChangeOnly skips reads nothing [F106]", func(t *testing.T) {
		w := newDelayed(t, nil, item(finishedJob("1", phases.Succeeded), nextJob, withTarget, func(di *lsv1alpha1.DeployItem) {
			di.Spec.UpdateOnChangeOnly = true
		}), target("any"))
		w.pass()
		w.wantReads()
	})
}

// secondTarget returns the Target "second" with the given configuration.
func secondTarget(config string) *lsv1alpha1.Target {
	t := targetWith(config)
	t.Name = "second"
	return t
}

func TestRunReadsOtherTarget(t *testing.T) {
	const theSecond = "*v1alpha1.Target second"
	key := types.NamespacedName{Namespace: ns, Name: "second"}
	for revision, tc := range requests {
		t.Run(revision+": a new run sees another Target that was changed before it, with one read for all attempts [F106]", func(t *testing.T) {
			w := newDelayed(t, nil, item(tc.finished, withTarget), target("any"), secondTarget(`{"cluster":"old"}`))
			var seen []string
			w.fake.Always(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
				other, err := w.Runtime(deployerlib.Runtime{}).GetTarget(ctx, key)
				if err != nil {
					return err
				}
				seen = append(seen, string(other.Spec.Configuration.RawMessage))
				return deployerlib.WaitFor("a pod", time.Second)
			})
			w.delay(&lsv1alpha1.Target{}, "second")
			w.store(secondTarget(`{"cluster":"new"}`))
			w.request(tc.next)
			w.clock.Step(time.Minute)
			w.pass()
			if diff := cmp.Diff([]string{`{"cluster":"new"}`, `{"cluster":"new"}`}, seen); diff != "" {
				t.Errorf("contents of the other Target (-want +got):\n%s", diff)
			}
			w.wantReads(theTarget, theContext, theSecond)
		})
	}
	t.Run("outside of a requested run, another Target is read from the cache [F106]", func(t *testing.T) {
		w := newDelayed(t, nil, item(finishedJob("1", phases.Succeeded)), secondTarget(`{}`))
		if _, err := w.Runtime(deployerlib.Runtime{}).GetTarget(t.Context(), key); err != nil {
			t.Error(err)
		}
		w.wantReads()
	})
}

// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/examples/porting"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// newPortedEnv returns a world with a ported deployer, which deploys its objects to the cluster that contains the
// items.
func newPortedEnv(t *testing.T, port func(c client.Client) deployerlib.Deployer, objects ...client.Object) *testEnv {
	t.Helper()
	w := newTestEnv(t, objects)
	w.args.Deployer = port(w.client)
	if user, ok := w.args.Deployer.(deployerlib.RuntimeUser); ok {
		if err := user.UseRuntime(deployerlib.Runtime{Clock: w.clock}); err != nil {
			t.Fatal(err)
		}
	}
	w.startNewEngine()
	return w
}

// setPodPhase writes the phase to all ConfigMaps, which stand for pods in these tests.
func (w *testEnv) setPodPhase(phase corev1.PodPhase) {
	w.t.Helper()
	for _, pod := range w.listConfigMaps() {
		pod.Data = map[string]string{"phase": string(phase)}
		if err := w.client.Update(w.t.Context(), &pod); err != nil {
			w.t.Fatal(err)
		}
	}
}

// listConfigMaps returns the ConfigMaps that the deployer created.
func (w *testEnv) listConfigMaps() []corev1.ConfigMap {
	w.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := w.client.List(withoutRecording(w.t.Context()), list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// expectPhase checks the stored phase.
func (w *testEnv) expectPhase(want lsv1alpha1.DeployItemPhase) {
	w.t.Helper()
	if got := w.getItem().Status.Phase; got != want {
		w.t.Fatalf("phase %q, want %q, last error %+v", got, want, w.getItem().Status.LastError)
	}
}

var revisions = map[contract.Revision]struct{ begun, gone itemOption }{
	contract.RevisionJobID: {withJob("1"), func(di *lsv1alpha1.DeployItem) {
		withFinishedJob("1", phases.Succeeded)(di)
		withJob("2")(di)
		withDeletion(di)
	}},
	contract.RevisionAnnotation: {func(*lsv1alpha1.DeployItem) {}, func(di *lsv1alpha1.DeployItem) {
		withFinishedRun(phases.Succeeded)(di)
		di.Generation++
		withDeletion(di)
	}},
}

// TestPortContainer tests a deployer that stores its progress in the phase.
func TestPortContainer(t *testing.T) {
	port := func(c client.Client) deployerlib.Deployer {
		return deployerlib.Port(&porting.Container{Host: c}, nil)
	}
	for revision, items := range revisions {
		t.Run("a container is started once and then polled under "+string(revision)+" [F44]", func(t *testing.T) {
			w := newPortedEnv(t, port, newItem(items.begun))
			for range 30 {
				w.runAttempt()
			}
			if n := len(w.listConfigMaps()); n != 1 {
				t.Fatalf("%d pods were started", n)
			}
			w.expectPhase(phases.Progressing)
			w.setPodPhase(corev1.PodSucceeded)
			w.runAttempt()
			w.expectPhase(phases.Succeeded)
		})
		t.Run("a failed container keeps its phase, and is uninstalled once under "+string(revision)+" [F44]", func(t *testing.T) {
			w := newPortedEnv(t, port, newItem(items.gone))
			for range 30 {
				w.runAttempt()
			}
			if n := len(w.listConfigMaps()); n != 1 {
				t.Fatalf("%d pods were started", n)
			}
			w.expectPhase(phases.Deleting)
			w.setPodPhase(corev1.PodSucceeded)
			w.runAttempt()
			if w.getItem() != nil {
				t.Error("the item is still there")
			}
		})
	}
}

// TestPortHelm tests a deployer that finishes a deletion with the phase Deleting.
func TestPortHelm(t *testing.T) {
	for revision, items := range revisions {
		for name, helm := range map[string]func(c client.Client) *porting.Helm{
			"in memory":       func(c client.Client) *porting.Helm { return &porting.Helm{Target: c} },
			"through the API": func(c client.Client) *porting.Helm { return &porting.Helm{Target: c, Landscaper: c} },
		} {
			t.Run("a ported Helm deployer removes the finalizer "+name+", under "+string(revision)+" [F44]", func(t *testing.T) {
				w := newPortedEnv(t, func(c client.Client) deployerlib.Deployer { return deployerlib.Port(helm(c), nil) }, newItem(items.gone))
				calls := 0
				for w.getItem() != nil && calls < 30 {
					calls++
					w.runAttempt()
				}
				if calls != 1 {
					t.Errorf("Delete was called %d times", calls)
				}
			})
		}
	}
}

// TestPortMock tests a deployer that uses the phase to detect the first call of a run.
func TestPortMock(t *testing.T) {
	port := func(c client.Client) deployerlib.Deployer {
		mock := &porting.Mock{}
		return deployerlib.Port(mock, mock.Hooks())
	}
	config := func(fields map[string]any) itemOption {
		return func(di *lsv1alpha1.DeployItem) {
			fields["apiVersion"], fields["kind"] = "mock.deployer.landscaper.gardener.cloud/v1alpha1", "ProviderConfiguration"
			di.Spec.Configuration = toRaw(fields)
		}
	}
	for revision, items := range revisions {
		for name, tc := range map[string]struct {
			config map[string]any
			stored lsv1alpha1.DeployItemPhase // stored by the test before the second call, unless empty
			want   []lsv1alpha1.DeployItemPhase
		}{
			"succeeds":                          {map[string]any{}, "", []lsv1alpha1.DeployItemPhase{"Succeeded"}},
			"continues":                         {map[string]any{"phase": "Progressing"}, "", []lsv1alpha1.DeployItemPhase{"Progressing", "Progressing"}},
			"fails":                             {map[string]any{"phase": "Failed"}, "", []lsv1alpha1.DeployItemPhase{"Failed"}},
			"stays in the phase Init":           {map[string]any{"initialPhase": "Init"}, "", []lsv1alpha1.DeployItemPhase{"Init", "Init", "Init"}},
			"detects a run that is in progress": {map[string]any{"initialPhase": "Init"}, "Progressing", []lsv1alpha1.DeployItemPhase{"Init", "Progressing"}},
		} {
			t.Run(name+", under "+string(revision)+" [F44]", func(t *testing.T) {
				w := newPortedEnv(t, port, newItem(items.begun, config(tc.config)))
				for i, want := range tc.want {
					if i == 1 && tc.stored != "" {
						w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.Phase = tc.stored })
					}
					w.runAttempt()
					w.expectPhase(want)
				}
			})
		}
	}
	t.Run("a ported mock deployer runs by its schedule [F45]", func(t *testing.T) {
		w := newPortedEnv(t, port, newItem(withFinishedJob("1", phases.Succeeded), config(map[string]any{"continuousReconcile": map[string]any{"every": "1m"}})))
		w.runAttempt()
		if got := w.getItem().Status.LastReconcileTime; !got.Equal(newTime(0)) {
			t.Errorf("last run %s", got)
		}
	})
}

// TestPortStatusWritten tests a deployer that still writes the status itself.
func TestPortStatusWritten(t *testing.T) {
	for revision, items := range revisions {
		t.Run("a status that a ported deployer writes ends the run with an explanation under "+string(revision)+" [F44]", func(t *testing.T) {
			w := newPortedEnv(t, func(c client.Client) deployerlib.Deployer { return deployerlib.Port(&porting.Mock{Status: c}, nil) }, newItem(items.begun))
			w.runAttempt()
			w.runAttempt()
			di := w.getItem()
			if e := di.Status.LastError; di.Status.Phase != phases.Failed || e == nil || e.Reason != "StatusWritten" || !strings.Contains(e.Message, "status.phase") {
				t.Fatalf("phase %q, last error %+v", di.Status.Phase, e)
			}
			if di.Status.JobIDFinished != di.Status.JobID {
				t.Error("the job goes on")
			}
			w.popRequests()
			w.runAttempt()
			w.expectRequests()
		})
	}
	t.Run("a status that a ported deployer writes cancels the call but is not an interrupt [F44]", func(t *testing.T) {
		var w *testEnv
		w = newPortedEnv(t, func(c client.Client) deployerlib.Deployer {
			return deployerlib.Port(eventMock{Mock: &porting.Mock{Status: c}, event: func() { w.HandleEvent(w.getItem()) }}, nil)
		}, newItem())
		w.runAttempt()
		if e := w.getItem().Status.LastError; e == nil || e.Reason != "StatusWritten" {
			t.Fatalf("phase %q, last error %+v", w.getItem().Status.Phase, e)
		}
	})
	t.Run("a status that a ported deployer writes is distinguished from a write of metadata [F44]", func(t *testing.T) {
		w := newPortedEnv(t, func(c client.Client) deployerlib.Deployer { return deployerlib.Port(metadataWriter{c}, nil) }, newItem(withJob("1")))
		w.runAttempt()
		w.expectPhase(phases.Succeeded)
		if w.getItem().Annotations["mine"] != "yes" {
			t.Error("the annotation is gone")
		}
	})
}

// eventMock is a deployer that calls the function `event` at the end of Reconcile. As a result, the deployer's writes
// reach the cache before Reconcile returns.
type eventMock struct {
	*porting.Mock

	event func()
}

func (s eventMock) Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	err := s.Mock.Reconcile(ctx, lsCtx, di, target)
	s.event()
	return err
}

// metadataWriter writes metadata of its items.
type metadataWriter struct{ c client.Client }

func (w metadataWriter) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	di.Annotations = map[string]string{"mine": "yes"}
	if err := w.c.Update(ctx, di); err != nil {
		return err
	}
	di.Status.Phase = phases.Succeeded
	return nil
}

func (metadataWriter) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (metadataWriter) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// TestPortBackground tests the phase that a deployer sets in a background run. The status of the item does not contain
// this phase.
func TestPortBackground(t *testing.T) {
	t.Run("the phase of a background run is kept between calls and after a restart [F44]", func(t *testing.T) {
		w := newPortedEnv(t, func(c client.Client) deployerlib.Deployer {
			return deployerlib.Port(&porting.Container{Host: c}, nil)
		}, newItem(withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)))
		for range 5 {
			w.runAttempt()
		}
		w.startNewEngine()
		for range 5 {
			w.runAttempt()
		}
		if n := len(w.listConfigMaps()); n != 1 {
			t.Fatalf("%d pods were started", n)
		}
		w.setPodPhase(corev1.PodSucceeded)
		w.runAttempt()
		c := contract.GetCondition(w.getItem().Status.Conditions, contract.ConditionBackground)
		if w.expectPhase(phases.Succeeded); c == nil || c.Reason != "Succeeded" {
			t.Errorf("condition %+v", c)
		}
	})
}

// TestPortManifest tests a deployer for the annotation revision.
func TestPortManifest(t *testing.T) {
	var manifest *porting.Manifest
	port := func(o deployerlib.ClassicOptions) func(client.Client) deployerlib.Deployer {
		return func(c client.Client) deployerlib.Deployer {
			manifest = &porting.Manifest{Target: c}
			return deployerlib.PortClassic(manifest, o)
		}
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name, secret.Data = ns, "content", map[string][]byte{"config": []byte("a: b\n")}
	referring := newTarget("x")
	referring.Spec.Configuration, referring.Spec.SecretRef = nil, &lsv1alpha1.LocalSecretReference{Name: "content", Key: "config"}
	t.Run("a ported deployer does not receive a Target whose Secret expands to more data than it contains [F1, F44]", func(t *testing.T) {
		costly := secret.DeepCopy()
		costly.Data["config"] = []byte("a: &a [x, x]\nb: [*a, *a]\n")
		w := newPortedEnv(t, port(deployerlib.ClassicOptions{}), referring, costly, newItem(withJob("1"), withTarget))
		w.runAttempt()
		w.expectPhase(phases.Failed)
		if s := w.getItem().Status; !strings.Contains(s.LastError.Message, "has an anchor") || !slices.Contains(s.LastError.Codes, lsv1alpha1.ErrorConfigurationProblem) {
			t.Errorf("error %+v", s.LastError)
		}
	})
	for revision, items := range revisions {
		for from, objects := range map[string][]client.Object{"inline": {newTarget("x")}, "from a Secret": {referring, secret}} {
			t.Run("a ported deployer reads its Target "+from+", under "+string(revision)+" [F44]", func(t *testing.T) {
				w := newPortedEnv(t, port(deployerlib.ClassicOptions{}), append(objects, newItem(items.begun, withTarget))...)
				w.runAttempt()
				w.expectPhase(phases.Succeeded)
				if got := w.listConfigMaps(); len(got) != 1 || got[0].Data["a"] != "b" {
					t.Errorf("applied %v", got)
				}
			})
		}
		t.Run("a ported deployer deletes until no object is left under "+string(revision)+" [F44]", func(t *testing.T) {
			left := &corev1.ConfigMap{}
			left.Namespace, left.Name = ns, "manifest-item"
			w := newPortedEnv(t, port(deployerlib.ClassicOptions{}), left, newItem(items.gone))
			w.runAttempt()
			w.expectPhase(phases.Deleting)
			if w.runAttempt(); w.getItem() != nil {
				t.Error("the item is still there")
			}
		})
	}
	t.Run("a ported deployer supports force-reconcile [F44]", func(t *testing.T) {
		w := newPortedEnv(t, port(deployerlib.ClassicOptions{}), newTarget("x"), newItem(withFinishedRun(phases.Succeeded), withTarget, withOperation(lsv1alpha1.ForceReconcileOperation)))
		w.runAttempt()
		if w.expectPhase(phases.Succeeded); manifest.Forced != 1 || len(w.getItem().Annotations) != 0 {
			t.Errorf("forced %d times, annotations %v", manifest.Forced, w.getItem().Annotations)
		}
	})
	t.Run("the errors of a ported deployer hide the content of Secrets [F44]", func(t *testing.T) {
		broken := secret.DeepCopy()
		broken.Data["config"] = []byte("{\"password\": \"hunter2\", [")
		w := newPortedEnv(t, port(deployerlib.ClassicOptions{}), referring, broken, newItem(withJob("1"), withTarget))
		w.runAttempt()
		w.expectPhase(phases.Failed)
		if e := w.getItem().Status.LastError; strings.Contains(e.Message, "hunter2") {
			t.Errorf("last error %+v", e)
		}
	})
	failing := newTarget("x")
	failing.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"a":"b"}`))
	for name, tc := range map[string]struct {
		after time.Duration
		want  lsv1alpha1.DeployItemPhase
	}{
		"fails after five minutes of the same error": {5 * time.Minute, phases.Failed},
		"continues without that option":              {0, phases.Progressing},
	} {
		t.Run(name+" [F44]", func(t *testing.T) {
			w := newPortedEnv(t, func(c client.Client) deployerlib.Deployer {
				return deployerlib.PortClassic(&porting.Manifest{Target: failingClient{c}}, deployerlib.ClassicOptions{FailAfter: tc.after})
			}, failing, newItem(withTarget))
			for _, step := range []time.Duration{0, 5 * time.Minute} {
				w.clock.Step(step)
				w.runAttempt()
				w.expectPhase(phases.Progressing)
			}
			w.clock.Step(time.Second)
			w.runAttempt()
			w.expectPhase(tc.want)
			if e := w.getItem().Status.LastError; e == nil || e.Operation != "ApplyObjects" || len(e.Codes) != 0 {
				t.Errorf("last error %+v", e)
			}
		})
	}
}

// failingClient is a cluster in which nothing can be created.
type failingClient struct{ client.Client }

func (failingClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errBoom
}

// TestPortHooks tests hooks of all signatures and all ways to register them.
func TestPortHooks(t *testing.T) {
	next := func(context.Context, time.Time, *lsv1alpha1.DeployItem) (*time.Time, error) { return new(t0), nil }
	setup := continuousreconcile.ContinuousReconcileExtensionSetup(next)
	plain := func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
		return nil, nil
	}
	for name, d := range map[string]deployerlib.Deployer{
		"PortedHooks":                        deployerlib.Port(&porting.Container{}, deployerlib.PortedHooks{}.RegisterHookSetup(setup)),
		"nil PortedHooks":                    deployerlib.Port(&porting.Container{}, deployerlib.PortedHooks(nil).RegisterHookSetup(setup)),
		"the method ExtensionHooks":          deployerlib.Port(&porting.Helm{Next: next}, nil),
		"a ported method":                    deployerlib.Port(hookedDeployer{setup: setup}, nil),
		"a classic deployer":                 deployerlib.PortClassic(&porting.Manifest{Next: next}, deployerlib.ClassicOptions{}),
		"all kinds of registration together": deployerlib.Port(&porting.Helm{Next: next}, deployerlib.PortedHooks{}.RegisterHook(plain, extension.EndHook)),
	} {
		t.Run(name+" [F45]", func(t *testing.T) {
			hooks := d.ExtensionHooks()
			if err := hooks.Validate(); err != nil || len(hooks[extension.ShouldReconcileHook]) != 1 {
				t.Fatalf("%d hooks, %v", len(hooks[extension.ShouldReconcileHook]), err)
			}
			due := newItem(withFinishedRun(phases.Succeeded))
			res, err := hooks.ExecuteHooks(t.Context(), logr.Discard(), due, nil, extension.ShouldReconcileHook)
			if err != nil || res == nil || res.AbortReconcile {
				t.Errorf("the schedule returned %+v, %v", res, err)
			}
		})
	}
	t.Run("a hook with a logger receives the logger of the reconcile [F45]", func(t *testing.T) {
		var got logr.Logger
		hook := func(_ context.Context, log logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
			got = log
			return nil, nil
		}
		setup := extension.ReconcileExtensionHookSetup{Hook: hook, HookTypes: []extension.HookType{extension.EndHook}}
		d := deployerlib.Port(&porting.Container{}, deployerlib.PortedHooks{}.RegisterHookSetup(setup))
		log := funcr.New(func(string, string) {}, funcr.Options{})
		if _, err := d.ExtensionHooks().ExecuteHooks(t.Context(), log, nil, nil, extension.EndHook); err != nil || got.GetSink() != log.GetSink() {
			t.Errorf("logger %v, error %v, want the logger of the reconcile", got, err)
		}
	})
}

// hookedDeployer is a ported deployer whose method ExtensionHooks returns PortedHooks.
type hookedDeployer struct {
	*porting.Container

	setup extension.ReconcileExtensionHookSetup
}

func (h hookedDeployer) ExtensionHooks() deployerlib.PortedHooks {
	return deployerlib.PortedHooks{}.RegisterHookSetup(h.setup)
}

// TestPortWithoutDeployer checks that the arguments are invalid if Port or PortClassic is called without a deployer.
func TestPortWithoutDeployer(t *testing.T) {
	t.Run("a missing deployer is an error and does not panic [F44]", func(t *testing.T) {
		for _, d := range []deployerlib.Deployer{deployerlib.Port(nil, nil), deployerlib.PortClassic(nil, deployerlib.ClassicOptions{})} {
			args := deployerlib.DeployerArgs{Type: testType, Deployer: d}
			args.Default()
			if args.Validate() == nil {
				t.Error("no error")
			}
		}
	})
}

// TestPortOptional checks that the optional methods of a ported deployer are called if the deployer has such methods.
func TestPortOptional(t *testing.T) {
	t.Run("the optional methods UseRuntime and Resume are called [F44]", func(t *testing.T) {
		fake := landscapertest.NewFake()
		w := newPortedEnv(t, func(client.Client) deployerlib.Deployer {
			return deployerlib.Port(landscapertest.Resuming{Fake: fake}, nil)
		}, newItem(withFinishedJob("1", phases.Succeeded)))
		w.runAttempt()
		if fake.Runtime().Clock != w.clock || fake.CountCalls(key, landscapertest.ActionResume) != 1 {
			t.Errorf("runtime %+v, resumed %d times", fake.Runtime(), fake.CountCalls(key, landscapertest.ActionResume))
		}
		if _, resumes := deployerlib.Port(&porting.Container{}, nil).(deployerlib.Resumer); resumes {
			t.Error("a deployer without Resume implements Resumer")
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// itemIn returns an item in the given phase, with the given changes.
func itemIn(phase lsv1alpha1.DeployItemPhase, change ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Name, di.Generation, di.Status.Phase = "a", 2, phase
	for _, f := range change {
		f(di)
	}
	return di
}

func TestStateShowsItems(t *testing.T) {
	job := func(id, finished string) func(*lsv1alpha1.DeployItem) {
		return func(di *lsv1alpha1.DeployItem) {
			di.Annotations = map[string]string{lsv1alpha1.DeployerTypeAnnotation: "mock"}
			di.Status.JobID, di.Status.JobIDFinished = id, finished
		}
	}
	for name, tc := range map[string]struct {
		item *lsv1alpha1.DeployItem
		want row
	}{
		"new":      {item: itemIn(""), want: row{phase: "(new)", job: "generation 2"}},
		"running":  {item: itemIn("Progressing"), want: row{phase: "Progressing", job: "generation 2"}},
		"outdated": {item: itemIn("Succeeded", func(di *lsv1alpha1.DeployItem) { di.Status.ObservedGeneration = 1 }), want: row{phase: "Succeeded", job: "generation 2"}},
		"done":     {item: itemIn("Succeeded", func(di *lsv1alpha1.DeployItem) { di.Status.ObservedGeneration = 2 }), want: row{phase: "Succeeded", job: "generation 2, done"}},
		"no job":   {item: itemIn("", job("", "")), want: row{phase: "(new)", job: "no job yet"}},
		"job":      {item: itemIn("Init", job("j1", "")), want: row{phase: "Init", job: "j1"}},
		"job done": {item: itemIn("Succeeded", job("j1", "j1")), want: row{phase: "Succeeded", job: "j1, done"}},
		"error": {item: itemIn("Failed", func(di *lsv1alpha1.DeployItem) {
			di.Status.LastError = &lsv1alpha1.Error{Reason: "Why", Message: "one\ntwo"}
		}), want: row{phase: "Failed", job: "generation 2", event: "Why: one; two"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newState()
			b.observe(tc.item)
			tc.want.order, tc.want.name = "a", "a"
			if diff := cmp.Diff([]row{tc.want}, b.snapshot(), cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("rows: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestStateShowsLandscaper(t *testing.T) {
	const job, other = "7379ebf1-0000-4000-8000-000000000000", "45a9a004-0000-4000-8000-000000000000"
	lastError := &lsv1alpha1.Error{Reason: "Why", Message: "text"}
	in, exec := &lsv1alpha1.Installation{}, &lsv1alpha1.Execution{}
	in.Name, in.Status.InstallationPhase, in.Status.LastError = "db", "Progressing", lastError
	in.Status.JobID, in.Status.JobIDFinished = job, other
	exec.Name, exec.Status.ExecutionPhase, exec.Status.LastError = "db", "Failed", lastError
	exec.Status.JobID, exec.Status.JobIDFinished = job, job
	di := itemIn("Succeeded", func(di *lsv1alpha1.DeployItem) {
		di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "db", lsv1alpha1.ExecutionManagedNameLabel: "server"}
		di.Status.JobID = other
	})
	b := newState()
	b.step(deployerlib.Step{Item: item("a"), Kind: deployerlib.StepCall, Name: "reconcile"})
	for _, obj := range []any{di, exec, in, &lsv1alpha1.Target{}} {
		b.observe(obj)
	}
	want := []row{
		{order: "db/0", name: "Installation db", phase: "Progressing", job: "7379ebf1", hooks: noHooks},
		{order: "db/1", name: "Execution db", phase: "Failed", job: "7379ebf1, done", hooks: noHooks, event: "Why: text"},
		{order: "db/2/server/a", name: "DeployItem server", phase: "Succeeded", job: "45a9a004", event: "reconcile was called"},
	}
	if diff := cmp.Diff(want, b.snapshot(), cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("rows: -want, +got:\n%s", diff)
	}
}

func TestStateNotesWhatIsGone(t *testing.T) {
	for name, obj := range map[string]any{
		"seen":   itemIn("Succeeded"),
		"missed": toolscache.DeletedFinalStateUnknown{Obj: itemIn("Succeeded")},
	} {
		b := newState()
		b.gone(obj)
		if rows := b.snapshot(); len(rows) != 1 || rows[0].phase != "(gone)" {
			t.Errorf("%s: want one row that is gone, got %v", name, rows)
		}
	}
}

func TestStateCountsHooks(t *testing.T) {
	b := newState()
	for _, ht := range extension.HookTypes() {
		var di *lsv1alpha1.DeployItem
		if ht != extension.StartHook {
			di = itemIn("Init")
		}
		if !slices.Contains(b.silent(), ht) {
			t.Errorf("%s was not called yet, but is not silent", ht)
		}
		if res, err := b.hook(t.Context(), logr.Discard(), di, nil, ht); res != nil || err != nil {
			t.Errorf("the hook has no opinion, got %v, %v", res, err)
		}
	}
	if silent := b.silent(); len(silent) != 0 {
		t.Errorf("silent: want none, got %q", silent)
	}
	if rows := b.snapshot(); len(rows) != 1 || rows[0].hooks != 9 {
		t.Errorf("all but Start know the item: want 9 calls, got %v", rows)
	}
	if !strings.HasPrefix(b.summary(), "Start 1, DuringResponsibilityCheck 1, ") {
		t.Errorf("summary: got %s", b.summary())
	}
}

func TestStateNotesCalls(t *testing.T) {
	b := newState()
	b.step(deployerlib.Step{Item: item("a"), Kind: deployerlib.StepPhase, Name: "fetch"})
	if rows := b.snapshot(); len(rows) != 0 {
		t.Errorf("phases are not shown, got %v", rows)
	}
	b.step(deployerlib.Step{Item: item("a"), Kind: deployerlib.StepCall, Name: "reconcile", Err: errors.New("boom")})
	if rows := b.snapshot(); len(rows) != 1 || rows[0].event != "reconcile failed: boom" {
		t.Errorf("want the failed call, got %v", rows)
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a wait [F55]":                      {deployerlib.WaitFor("pods", 0), "reconcile is waiting for pods"},
		"a wrapped wait [F55]":              {fmt.Errorf("web: %w", deployerlib.WaitFor("pods", 0)), "reconcile is waiting for pods"},
		"an error that reads as one [F55]":  {errors.New("waiting for the lock failed"), "reconcile failed: waiting for the lock failed"},
		"a wait that an error joined [F55]": {errors.Join(deployerlib.WaitFor("pods", 0), errors.New("boom")), "reconcile failed: waiting for pods; boom"},
	} {
		t.Run(name, func(t *testing.T) {
			b.step(deployerlib.Step{Item: item("a"), Kind: deployerlib.StepCall, Name: "reconcile", Err: tc.err})
			if got := b.snapshot()[0].event; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

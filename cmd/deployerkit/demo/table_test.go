// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// newItem returns an item in the given phase, with the given changes.
func newItem(phase lsv1alpha1.DeployItemPhase, changes ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Name, di.Generation, di.Status.Phase = "a", 2, phase
	for _, change := range changes {
		change(di)
	}
	return di
}

func TestRowOfItem(t *testing.T) {
	job := func(id, finished string) func(*lsv1alpha1.DeployItem) {
		return func(di *lsv1alpha1.DeployItem) {
			di.Annotations = map[string]string{lsv1alpha1.DeployerTypeAnnotation: "mock"}
			di.Status.JobID, di.Status.JobIDFinished = id, finished
		}
	}
	observed := func(generation int64) func(*lsv1alpha1.DeployItem) {
		return func(di *lsv1alpha1.DeployItem) { di.Status.ObservedGeneration = generation }
	}
	failed := func(di *lsv1alpha1.DeployItem) {
		di.Status.LastError = &lsv1alpha1.Error{Reason: "Why", Message: "one\ntwo"}
	}
	for name, tc := range map[string]struct {
		item *lsv1alpha1.DeployItem
		want row
	}{
		"a new item":     {newItem(""), row{phase: "(new)", job: "generation 2"}},
		"a running item": {newItem("Progressing"), row{phase: "Progressing", job: "generation 2"}},
		"an item that succeeded before its change":  {newItem("Succeeded", observed(1)), row{phase: "Succeeded", job: "generation 2"}},
		"an item that succeeded":                    {newItem("Succeeded", observed(2)), row{phase: "Succeeded", job: "generation 2, done"}},
		"an item without a job":                     {newItem("", job("", "")), row{phase: "(new)", job: "no job yet"}},
		"an item with a running job":                {newItem("Init", job("j1", "")), row{phase: "Init", job: "j1"}},
		"an item with a finished job":               {newItem("Succeeded", job("j1", "j1")), row{phase: "Succeeded", job: "j1, done"}},
		"an item with an error has it as its event": {newItem("Failed", failed), row{phase: "Failed", job: "generation 2", event: "Why: one; two"}},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable()
			table.recordObject(tc.item)
			tc.want.order, tc.want.name = "a", "a"
			if diff := cmp.Diff([]row{tc.want}, table.listRows(), cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("rows: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestTableSortsTheObjectsOfAnInstallation(t *testing.T) {
	const job, other = "7379ebf1-0000-4000-8000-000000000000", "45a9a004-0000-4000-8000-000000000000"
	lastError := &lsv1alpha1.Error{Reason: "Why", Message: "text"}
	in, exec := &lsv1alpha1.Installation{}, &lsv1alpha1.Execution{}
	in.Name, in.Status.InstallationPhase, in.Status.LastError = "db", "Progressing", lastError
	in.Status.JobID, in.Status.JobIDFinished = job, other
	exec.Name, exec.Status.ExecutionPhase, exec.Status.LastError = "db", "Failed", lastError
	exec.Status.JobID, exec.Status.JobIDFinished = job, job
	di := newItem("Succeeded", func(di *lsv1alpha1.DeployItem) {
		di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "db", lsv1alpha1.ExecutionManagedNameLabel: "server"}
		di.Status.JobID = other
	})
	table := newTable()
	table.recordCall(newCall(nil))
	for _, obj := range []any{di, exec, in, &lsv1alpha1.Target{}} {
		table.recordObject(obj)
	}
	want := []row{
		{order: "db/0", name: "Installation db", phase: "Progressing", job: "7379ebf1"},
		{order: "db/1", name: "Execution db", phase: "Failed", job: "7379ebf1, done", event: "Why: text"},
		{order: "db/2/server/a", name: "DeployItem server", phase: "Succeeded", job: "45a9a004", event: "reconcile was called"},
	}
	if diff := cmp.Diff(want, table.listRows(), cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("rows: -want, +got:\n%s", diff)
	}
}

func TestTableShowsDeletedItems(t *testing.T) {
	for name, obj := range map[string]any{
		"a deletion that was observed":        newItem("Succeeded"),
		"a deletion that the informer missed": toolscache.DeletedFinalStateUnknown{Obj: newItem("Succeeded")},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable()
			table.recordDeletion(obj)
			if rows := table.listRows(); len(rows) != 1 || rows[0].phase != "(gone)" {
				t.Errorf("got %v, want one row with the phase (gone)", rows)
			}
		})
	}
}

func TestTableCountsHooks(t *testing.T) {
	table := newTable()
	table.recordObject(newItem("Init"))
	for i, hook := range extension.AllHookTypes() {
		var di *lsv1alpha1.DeployItem
		if hook != extension.StartHook {
			di = newItem("Init")
		}
		if got := len(table.sumHooks()); got != i {
			t.Errorf("before %s: %d hooks were called, want %d", hook, got, i)
		}
		if res, err := table.recordHook(t.Context(), logr.Discard(), di, nil, hook); res != nil || err != nil {
			t.Errorf("%s: the hook returned %v, %v, want no result", hook, res, err)
		}
	}
	if rows := table.listRows(); len(rows) != 1 || rows[0].hooks != 9 {
		t.Errorf("got %v, want 9 calls for the item, because Start has no item", rows)
	}
	if got := table.countHooks("a", extension.EndHook); got != 1 {
		t.Errorf("countHooks: got %d, want 1", got)
	}
	if got := table.summarizeHooks(); !strings.HasPrefix(got, "Start 1, DuringResponsibilityCheck 1, ") {
		t.Errorf("summarizeHooks: got %s", got)
	}
}

// newCall returns the step in which the method Reconcile was called for the item "a".
func newCall(err error) deployerlib.Step {
	return deployerlib.Step{Item: types.NamespacedName{Namespace: namespace, Name: "a"}, Kind: deployerlib.StepCall, Name: "reconcile", Err: err}
}

func TestTableShowsTheLastCall(t *testing.T) {
	for name, tc := range map[string]struct {
		step deployerlib.Step
		want string
	}{
		"a phase is not shown":                                                 {deployerlib.Step{Item: newCall(nil).Item, Kind: deployerlib.StepPhase, Name: "fetch"}, ""},
		"a call is shown":                                                      {newCall(nil), "reconcile was called"},
		"a failed call is shown":                                               {newCall(errors.New("boom")), "reconcile failed: boom"},
		"a wait is shown as such [F55]":                                        {newCall(deployerlib.WaitFor("pods", 0)), "reconcile is waiting for pods"},
		"a wrapped wait is shown as such [F55]":                                {newCall(fmt.Errorf("web: %w", deployerlib.WaitFor("pods", 0))), "reconcile is waiting for pods"},
		"an error that reads like a wait is shown as a failure [F55]":          {newCall(errors.New("waiting for the lock failed")), "reconcile failed: waiting for the lock failed"},
		"a wait that is joined with another error is shown as a failure [F55]": {newCall(errors.Join(deployerlib.WaitFor("pods", 0), errors.New("boom"))), "reconcile failed: waiting for pods; boom"},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable()
			table.recordObject(newItem("Progressing"))
			table.recordCall(tc.step)
			if got := table.listRows()[0].event; got != tc.want {
				t.Errorf("the event is %q, want %q", got, tc.want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// scenario is a test case whose reconciles are recorded in testdata/reconciles.txtar.
type scenario struct {
	objects  []client.Object
	setups   []envOption
	script   func(*testEnv)
	attempts int // the number of attempts; the default is 1
}

func newItems(changes ...itemOption) []client.Object { return []client.Object{newItem(changes...)} }

// failHook returns a script that makes the hooks of one type return an error.
func failHook(t extension.HookType) func(*testEnv) {
	return func(w *testEnv) { w.setHookResult(t, newHookResult(false, time.Hour), errBoom) }
}

func TestRecordedReconciles(t *testing.T) {
	noFinalizer := func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"example.com/other"} }
	scenarios := map[string]scenario{
		"annotation first run":         {objects: newItems(withOperation(lsv1alpha1.ReconcileOperation))},
		"annotation finished":          {objects: newItems(withFinishedRun(phases.Succeeded))},
		"annotation spec changed":      {objects: newItems(withFinishedRun(phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Generation = 2 })},
		"annotation forced by hook":    {objects: newItems(withFinishedRun(phases.Succeeded)), script: func(w *testEnv) { w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, time.Hour), nil) }},
		"annotation abort":             {objects: newItems(withRun(0), withOperation(contract.AbortOperation))},
		"annotation abort too late":    {objects: newItems(withFinishedRun(phases.Succeeded), withOperation(contract.AbortOperation))},
		"annotation force-reconcile":   {objects: newItems(withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation))},
		"annotation delete":            {objects: newItems(withFinishedRun(phases.Succeeded), withDeletion), attempts: 2},
		"annotation expired":           {objects: newItems(withRun(-time.Hour))},
		"job first run":                {objects: newItems(withJob("1")), attempts: 2},
		"job finished":                 {objects: newItems(withFinishedJob("1", phases.Succeeded))},
		"job never run":                {objects: newItems(func(di *lsv1alpha1.DeployItem) { di.Annotations[lsv1alpha1.DeployerTypeAnnotation] = string(testType) })},
		"job resumed":                  {objects: newItems(withRunningJob("1", 0))},
		"job expired":                  {objects: newItems(withRunningJob("1", -time.Hour))},
		"job unchanged":                {objects: newItems(withFinishedJob("1", phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true; withJob("2")(di) })},
		"job fails and is tried again": {objects: newItems(withJob("1")), attempts: 2, script: func(w *testEnv) { w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errBoom)) }},
		"job waits": {objects: newItems(withJob("1")), attempts: 2, script: func(w *testEnv) {
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("a pod", time.Minute))
		}},
		"job progresses": {objects: newItems(withJob("1")), attempts: 2, script: func(w *testEnv) {
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.SetPhase(phases.Progressing))
		}},
		"job background forced by hook": {objects: newItems(withFinishedJob("1", phases.Succeeded)), script: func(w *testEnv) { w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, time.Hour), nil) }},
		"job background fails": {objects: newItems(withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)), attempts: 2, script: func(w *testEnv) {
			w.fake.QueueAnswers(contract.ActionForceReconcile, landscapertest.ReturnError(errBoom))
		}},
		"job test-reconcile":            {objects: newItems(withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.TestReconcileOperation))},
		"job delete":                    {objects: newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion)},
		"job delete not asked for":      {objects: newItems(withFinishedJob("1", phases.Succeeded), withDeletion)},
		"job delete without uninstall":  {objects: newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion, withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true"))},
		"job delete never deployed":     {objects: newItems(withJob("1"), withDeletion, withTarget)},
		"terminating without finalizer": {objects: newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion, noFinalizer)},
		"gone":                          {},
		"other type":                    {objects: newItems(withJob("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "example.com/other" })},
		"other target":                  {objects: append(newItems(withJob("1"), withTarget), newTarget("other")), setups: []envOption{withSelector()}},
		"other target claimed by hook": {objects: append(newItems(withJob("1"), withTarget), newTarget("other")), setups: []envOption{withSelector()}, script: func(w *testEnv) {
			w.setHookResult(extension.DuringResponsibilityCheckHook, newHookResult(false, 0), nil)
		}},
		"my target refused by hook": {objects: append(newItems(withJob("1"), withTarget), newTarget("mine")), setups: []envOption{withSelector()}, script: func(w *testEnv) {
			w.setHookResult(extension.DuringResponsibilityCheckHook, newHookResult(true, 0), nil)
		}},
		"job paused":                   {objects: newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withPause), attempts: 2},
		"annotation paused in mid-run": {objects: newItems(withRun(0), withNewGeneration, withPause), attempts: 2},
		"target missing":               {objects: newItems(withJob("1"), withTarget), attempts: 2},
		"context missing":              {objects: newItems(withJob("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Context = "missing" })},
		"config missing":               {objects: newItems(withJob("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = nil })},
	}
	for _, hookType := range extension.AllHookTypes() {
		scenarios["hook aborts at "+string(hookType)] = scenario{objects: newObjectsFor(hookType), script: func(w *testEnv) { w.setHookResult(hookType, newHookResult(true, time.Hour), nil) }}
		scenarios["hook fails at "+string(hookType)] = scenario{objects: newObjectsFor(hookType), script: failHook(hookType)}
	}
	scenarios["hook fails at End of a deletion"] = scenario{objects: newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion), script: failHook(extension.EndHook)}
	scenarios["hook fails on an expired run"] = scenario{objects: newItems(withRunningJob("1", -time.Hour)), script: failHook(extension.ShouldReconcileHook)}
	scenarios["hook aborts an unchanged job"] = scenario{
		objects: newItems(withFinishedJob("1", phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true; withJob("2")(di) }),
		script: func(w *testEnv) {
			w.setHookResult(extension.AfterResponsibilityCheckHook, newHookResult(true, time.Hour), nil)
		},
	}
	scenarios["hook forces an unchanged job"] = scenario{
		objects: newItems(withFinishedJob("1", phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true; withJob("2")(di) }),
		script:  func(w *testEnv) { w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, time.Hour), nil) },
	}
	for _, hookType := range []extension.HookType{extension.AfterResponsibilityCheckHook, extension.ShouldReconcileHook} {
		scenarios["hook fails on a finished item at "+string(hookType)] = scenario{objects: newItems(withFinishedJob("1", phases.Succeeded)), script: failHook(hookType)}
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) { s.run(t, name) })
	}
}

func withAnnotation(key, value string) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Annotations[key] = value }
}

// newObjectsFor returns the objects of a world in which an attempt runs the hooks of the given type.
func newObjectsFor(t extension.HookType) []client.Object {
	switch t {
	case extension.BeforeAbortHook:
		return newItems(withRun(0), withOperation(contract.AbortOperation))
	case extension.BeforeForceReconcileHook:
		return newItems(withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation))
	case extension.BeforeDeleteHook:
		return newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion)
	default:
		return newItems(withJob("1"))
	}
}

// run compares the steps of each attempt, and the item after each attempt, with the golden file.
func (s scenario) run(t *testing.T, name string) {
	w := newTestEnv(t, s.objects, append([]envOption{withHooks()}, s.setups...)...)
	if s.script != nil {
		s.script(w)
	}
	var b strings.Builder
	for range max(s.attempts, 1) {
		ended := w.runAttempt()
		b.WriteString(w.trace.Format(key))
		w.trace.Forget(key)
		fmt.Fprintf(&b, "result → %s\n", ended.Result.RequeueAfter)
		if ended.Err != nil {
			fmt.Fprintf(&b, "error → %v\n", ended.Err)
		}
		fmt.Fprintf(&b, "requests → %s\n", strings.Join(w.popRequests(), ", "))
		b.WriteString(formatItem(w.getItem()))
		w.clock.Step(time.Second)
	}
	compareGolden(t, strings.ReplaceAll(name, " ", "-"), b.String())
}

// compareGolden compares the text `got` with the file of the given name in testdata/reconciles.txtar. With the flag
// -update, it replaces the file first.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	const path = "testdata/reconciles.txtar"
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i, found := slices.BinarySearchFunc(archive.Files, name, func(f txtar.File, name string) int { return strings.Compare(f.Name, name) })
	if !found {
		archive.Files = slices.Insert(archive.Files, i, txtar.File{Name: name})
	}
	if *update {
		archive.Files[i].Data = []byte(got)
		if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(archive.Files[i].Data), got); diff != "" {
		t.Errorf("%s in %s differs (-want +got, run with -update to accept):\n%s", name, path, diff)
	}
}

// formatItem describes an item after an attempt.
func formatItem(di *lsv1alpha1.DeployItem) string {
	if di == nil {
		return "item → gone\n"
	}
	s := di.Status
	if len(s.JobID) > 8 { // the library created this random ID
		s.JobID, s.JobIDFinished = "fresh", strings.ReplaceAll(s.JobIDFinished, s.JobID, "fresh")
	}
	text := fmt.Sprintf("item → phase %q, job %q, finished %q, observed %d of %d\n", s.Phase, s.JobID, s.JobIDFinished, s.ObservedGeneration, di.Generation)
	if s.LastError != nil {
		text += fmt.Sprintf("item → error %s %s %v %q\n", s.LastError.Operation, s.LastError.Reason, s.LastError.Codes, s.LastError.Message)
	}
	for _, c := range s.Conditions {
		text += fmt.Sprintf("item → condition %s=%s %s %q\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, key := range []string{lsv1alpha1.OperationAnnotation, lsv1alpha1.ReconcileTimestampAnnotation, contract.AbortTimestampAnnotation} {
		if value, ok := di.Annotations[key]; ok {
			text += fmt.Sprintf("item → annotation %s=%s\n", key, value)
		}
	}
	return text
}

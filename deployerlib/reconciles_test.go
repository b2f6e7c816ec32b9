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
	objects []client.Object
	setups  []setup
	script  func(*world)
	passes  int // the number of attempts; the default is 1
}

func items(changes ...change) []client.Object { return []client.Object{item(changes...)} }

// hookFails returns a script that makes the hooks of one type return an error.
func hookFails(t extension.HookType) func(*world) {
	return func(w *world) { w.on(t, result(false, time.Hour), errBoom) }
}

func TestRecordedReconciles(t *testing.T) {
	noFinalizer := func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"example.com/other"} }
	scenarios := map[string]scenario{
		"annotation first run":          {objects: items(operation(lsv1alpha1.ReconcileOperation))},
		"annotation finished":           {objects: items(finished(phases.Succeeded))},
		"annotation spec changed":       {objects: items(finished(phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Generation = 2 })},
		"annotation forced by hook":     {objects: items(finished(phases.Succeeded)), script: func(w *world) { w.on(extension.ShouldReconcileHook, result(false, time.Hour), nil) }},
		"annotation abort":              {objects: items(running(0), operation(contract.AbortOperation))},
		"annotation abort too late":     {objects: items(finished(phases.Succeeded), operation(contract.AbortOperation))},
		"annotation force-reconcile":    {objects: items(finished(phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation))},
		"annotation delete":             {objects: items(finished(phases.Succeeded), deleted), passes: 2},
		"annotation expired":            {objects: items(running(-time.Hour))},
		"job first run":                 {objects: items(job("1")), passes: 2},
		"job finished":                  {objects: items(finishedJob("1", phases.Succeeded))},
		"job never run":                 {objects: items(func(di *lsv1alpha1.DeployItem) { di.Annotations[lsv1alpha1.DeployerTypeAnnotation] = string(testType) })},
		"job resumed":                   {objects: items(runningJob("1", 0))},
		"job expired":                   {objects: items(runningJob("1", -time.Hour))},
		"job unchanged":                 {objects: items(finishedJob("1", phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true; job("2")(di) })},
		"job fails and is tried again":  {objects: items(job("1")), passes: 2, script: func(w *world) { w.fake.On(contract.ActionReconcile, landscapertest.Fail(errBoom)) }},
		"job waits":                     {objects: items(job("1")), passes: 2, script: func(w *world) { w.fake.On(contract.ActionReconcile, landscapertest.Wait("a pod", time.Minute)) }},
		"job progresses":                {objects: items(job("1")), passes: 2, script: func(w *world) { w.fake.On(contract.ActionReconcile, landscapertest.Phase(phases.Progressing)) }},
		"job background forced by hook": {objects: items(finishedJob("1", phases.Succeeded)), script: func(w *world) { w.on(extension.ShouldReconcileHook, result(false, time.Hour), nil) }},
		"job background fails":          {objects: items(finishedJob("1", phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation)), passes: 2, script: func(w *world) { w.fake.On(contract.ActionForceReconcile, landscapertest.Fail(errBoom)) }},
		"job test-reconcile":            {objects: items(finishedJob("1", phases.Succeeded), operation(lsv1alpha1.TestReconcileOperation))},
		"job delete":                    {objects: items(finishedJob("1", phases.Succeeded), job("2"), deleted)},
		"job delete not asked for":      {objects: items(finishedJob("1", phases.Succeeded), deleted)},
		"job delete without uninstall":  {objects: items(finishedJob("1", phases.Succeeded), job("2"), deleted, annotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true"))},
		"job delete never deployed":     {objects: items(job("1"), deleted, withTarget)},
		"terminating without finalizer": {objects: items(finishedJob("1", phases.Succeeded), job("2"), deleted, noFinalizer)},
		"gone":                          {},
		"other type":                    {objects: items(job("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "example.com/other" })},
		"other target":                  {objects: append(items(job("1"), withTarget), target("other")), setups: []setup{withSelector()}},
		"other target claimed by hook":  {objects: append(items(job("1"), withTarget), target("other")), setups: []setup{withSelector()}, script: func(w *world) { w.on(extension.DuringResponsibilityCheckHook, result(false, 0), nil) }},
		"my target refused by hook":     {objects: append(items(job("1"), withTarget), target("mine")), setups: []setup{withSelector()}, script: func(w *world) { w.on(extension.DuringResponsibilityCheckHook, result(true, 0), nil) }},
		"job paused":                    {objects: items(finishedJob("1", phases.Succeeded), job("2"), paused), passes: 2},
		"annotation paused in mid-run":  {objects: items(running(0), moved, paused), passes: 2},
		"target missing":                {objects: items(job("1"), withTarget), passes: 2},
		"context missing":               {objects: items(job("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Context = "missing" })},
		"config missing":                {objects: items(job("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = nil })},
	}
	for _, hookType := range extension.HookTypes() {
		scenarios["hook aborts at "+string(hookType)] = scenario{objects: objectsFor(hookType), script: func(w *world) { w.on(hookType, result(true, time.Hour), nil) }}
		scenarios["hook fails at "+string(hookType)] = scenario{objects: objectsFor(hookType), script: hookFails(hookType)}
	}
	scenarios["hook fails at End of a deletion"] = scenario{objects: items(finishedJob("1", phases.Succeeded), job("2"), deleted), script: hookFails(extension.EndHook)}
	scenarios["hook fails on an expired run"] = scenario{objects: items(runningJob("1", -time.Hour)), script: hookFails(extension.ShouldReconcileHook)}
	scenarios["hook aborts an unchanged job"] = scenario{
		objects: items(finishedJob("1", phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true; job("2")(di) }),
		script:  func(w *world) { w.on(extension.AfterResponsibilityCheckHook, result(true, time.Hour), nil) },
	}
	scenarios["hook forces an unchanged job"] = scenario{
		objects: items(finishedJob("1", phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true; job("2")(di) }),
		script:  func(w *world) { w.on(extension.ShouldReconcileHook, result(false, time.Hour), nil) },
	}
	for _, hookType := range []extension.HookType{extension.AfterResponsibilityCheckHook, extension.ShouldReconcileHook} {
		scenarios["hook fails on a finished item at "+string(hookType)] = scenario{objects: items(finishedJob("1", phases.Succeeded)), script: hookFails(hookType)}
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) { s.run(t, name) })
	}
}

func annotation(key, value string) change {
	return func(di *lsv1alpha1.DeployItem) { di.Annotations[key] = value }
}

// objectsFor returns the objects of a world in which an attempt runs the hooks of the given type.
func objectsFor(t extension.HookType) []client.Object {
	switch t {
	case extension.BeforeAbortHook:
		return items(running(0), operation(contract.AbortOperation))
	case extension.BeforeForceReconcileHook:
		return items(finished(phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation))
	case extension.BeforeDeleteHook:
		return items(finishedJob("1", phases.Succeeded), job("2"), deleted)
	default:
		return items(job("1"))
	}
}

// run compares the steps of each attempt, and the item after each attempt, with the golden file.
func (s scenario) run(t *testing.T, name string) {
	w := newWorld(t, s.objects, append([]setup{withHooks()}, s.setups...)...)
	if s.script != nil {
		s.script(w)
	}
	var b strings.Builder
	for range max(s.passes, 1) {
		ended := w.pass()
		b.WriteString(w.trace.String(key))
		w.trace.Forget(key)
		fmt.Fprintf(&b, "result → %s\n", ended.Result.RequeueAfter)
		if ended.Err != nil {
			fmt.Fprintf(&b, "error → %v\n", ended.Err)
		}
		fmt.Fprintf(&b, "requests → %s\n", strings.Join(w.sent(), ", "))
		b.WriteString(summary(w.stored()))
		w.clock.Step(time.Second)
	}
	golden(t, strings.ReplaceAll(name, " ", "-"), b.String())
}

// golden compares the text `got` with the file of the given name in testdata/reconciles.txtar. With the flag -update,
// it replaces the file first.
func golden(t *testing.T, name, got string) {
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

// summary describes an item after an attempt.
func summary(di *lsv1alpha1.DeployItem) string {
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

// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/contract"
)

type item = *lsv1alpha1.DeployItem

var phases = lsv1alpha1.DeployItemPhases

// testContext is passed to a check, as testing.T is passed to a test. Its methods end the check if a promise is
// broken.
type testContext struct {
	ctx   context.Context
	env   *env
	ns    *namespace
	alone bool // no other check is running

	// items for use in checks; a check must create the items that it uses
	valid, slow, invalid, foreign *testItem
	barriers                      int

	failure string
}

func newTestContext(ctx context.Context, e *env, alone bool) (*testContext, error) {
	ns, err := e.newNamespace(ctx)
	if err != nil {
		return nil, err
	}
	t := &testContext{ctx: ctx, env: e, ns: ns, alone: alone}
	t.valid, t.slow = t.item("valid", e.subject.Valid), t.item("slow", e.subject.Slow)
	t.foreign = t.item("foreign", e.subject.Valid)
	return t, nil
}

// item returns an item that has not been created yet.
func (t *testContext) item(name string, config func(types.NamespacedName) any) *testItem {
	return &testItem{t: t, key: types.NamespacedName{Namespace: t.ns.name, Name: name}, config: config}
}

// do runs f until f returns or a requirement fails. It returns the failure, or "".
func (t *testContext) do(f func(*testContext)) string {
	done := make(chan struct{})
	go func() { // f runs in its own goroutine, because the method `fail` ends the goroutine in which it is called
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				t.failure = fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())
			}
		}()
		f(t)
	}()
	<-done
	return t.failure
}

// fail ends the check with a failure.
func (t *testContext) fail(format string, args ...any) {
	t.failure = strings.TrimSpace(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// must ends the check with a failure if err is not nil.
func (t *testContext) must(err error) {
	if err != nil {
		t.fail("%v", err)
	}
}

// require ends the check with a failure if ok is false.
func (t *testContext) require(ok bool, format string, args ...any) {
	if !ok {
		t.fail(format, args...)
	}
}

func (t *testContext) getBounds() Bounds { return t.env.subject.Bounds }

// usesJobs reports whether Landscaper requests runs with job IDs in this revision.
func (t *testContext) usesJobs() bool { return t.env.usesJobs() }

// deployValid deploys the valid item and waits for its success.
func (t *testContext) deployValid(options ...option) item {
	t.valid.createAndTrigger(options...)
	di := t.valid.waitUntilFinished()
	t.require(di.Status.Phase == phases.Succeeded, "a valid item ended as %q%s", di.Status.Phase, formatError(di))
	return di
}

// deploySlow deploys the slow item and waits until its run is in progress.
func (t *testContext) deploySlow(options ...option) item {
	t.slow.createAndTrigger(options...)
	return t.slow.waitUntil("reach phase Progressing", func(di item) bool { return di.Status.Phase == phases.Progressing })
}

// deployInvalid deploys the invalid item and waits for its failure.
func (t *testContext) deployInvalid(note string) item {
	t.invalid = t.item("invalid", func(key types.NamespacedName) any { return t.env.subject.Invalid(key, note) })
	t.invalid.createAndTrigger()
	di := t.invalid.waitUntilFinished()
	t.require(di.Status.Phase == phases.Failed, "an invalid item ended as %q", di.Status.Phase)
	t.require(di.Status.LastError != nil, "an invalid item failed without lastError")
	return di
}

// setOtherType gives an item a type that the subject is not responsible for.
func (t *testContext) setOtherType(di item) { di.Spec.Type = t.env.subject.Type + "-other" }

// addFinalizer adds Landscaper's finalizer to an item. Under the job-ID revision, it does nothing, because Landscaper
// has already added the finalizer.
func (t *testContext) addFinalizer(di item) {
	if !t.usesJobs() {
		controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	}
}

func (t *testContext) makeTarget(name string, labels map[string]string) {
	t.must(t.ns.makeTarget(t.ctx, name, labels))
}

// removeTarget deletes the Target of the items.
func (t *testContext) removeTarget() {
	target := &lsv1alpha1.Target{}
	target.Namespace, target.Name = t.ns.name, targetName
	t.must(t.env.client.Delete(t.ctx, target))
}

// requireNoWrites deploys another item, waits until its run has ended, and then waits for the duration Bounds.Quiet. It
// ends the check with a failure if di changes in that time.
func (t *testContext) requireNoWrites(di item) {
	t.waitForOtherItem()
	t.requireUnchanged(di)
}

// waitForOtherItem deploys another item and waits for the end of its run. By then, the deployer has received all
// earlier events.
func (t *testContext) waitForOtherItem() {
	t.barriers++
	next := t.item(fmt.Sprintf("later-%d", t.barriers), t.env.subject.Valid)
	next.createAndTrigger()
	next.waitUntil("finished", isFinal)
}

// requireUnchanged ends the check with a failure if the item changes within Bounds.Quiet.
func (t *testContext) requireUnchanged(di item) {
	now := di
	changed := func(ctx context.Context) (bool, error) {
		var err error
		now, err = t.env.ls.Get(ctx, client.ObjectKeyFromObject(di))
		return err == nil && now.ResourceVersion != di.ResourceVersion, err
	}
	err := wait.PollUntilContextTimeout(t.ctx, 50*time.Millisecond, t.getBounds().Quiet, true, changed)
	t.must(t.ctx.Err())
	switch {
	case err == nil:
		t.fail("the item was written; field managers other than Landscaper: %s; state of the item: %s", strings.Join(listOtherManagers(now), ", "), formatState(now))
	case apierrors.IsNotFound(err):
		t.fail("the item was deleted")
	case !wait.Interrupted(err):
		t.must(err)
	}
}

// listVersionsAfter returns the recorded versions of an item that are newer than the given version.
func (t *testContext) listVersionsAfter(di item) []item {
	versions := t.item(di.Name, nil).getVersions()
	i := slices.IndexFunc(versions, func(v item) bool { return v.ResourceVersion == di.ResourceVersion })
	t.require(i >= 0, "version %s of item %s was not recorded", di.ResourceVersion, di.Name)
	return versions[i+1:]
}

// requireStarted requires that the given version shows the start of a run.
func (t *testContext) requireStarted(di item) {
	s := di.Status
	t.require(s.Phase == phases.Init, "the first phase is %q", s.Phase)
	t.require(!s.LastReconcileTime.IsZero(), "the run began without lastReconcileTime")
	t.require(s.ObservedGeneration == di.Generation, "the run began with observedGeneration %d, but the generation is %d", s.ObservedGeneration, di.Generation)
	if t.usesJobs() {
		t.require(!s.LastReconcileTime.Before(s.JobIDGenerationTime), "lastReconcileTime %v is before jobIDGenerationTime %v", s.LastReconcileTime, s.JobIDGenerationTime)
	}
}

// requireStartedAfter requires that a run began after the given version was stored.
func (t *testContext) requireStartedAfter(di item) {
	for _, v := range t.listVersionsAfter(di) {
		if v.Status.Phase != di.Status.Phase {
			t.requireStarted(v)
			return
		}
	}
	t.fail("no run began")
}

// requireSameRun requires that the deployer has not restarted the run of an item.
func (t *testContext) requireSameRun(running item) {
	for _, di := range t.listVersionsAfter(running) {
		t.require(di.Status.Phase == phases.Progressing || isFinal(di), "the item showed phase %q after the restart", di.Status.Phase)
		t.require(di.Status.LastReconcileTime.Equal(running.Status.LastReconcileTime), "lastReconcileTime was %v and became %v",
			running.Status.LastReconcileTime, di.Status.LastReconcileTime)
	}
}

// requireRunContinues requires that the deployer does not restart the run of an item within Bounds.Quiet.
func (t *testContext) requireRunContinues(running item) {
	_ = wait.PollUntilContextTimeout(t.ctx, 50*time.Millisecond, t.getBounds().Quiet, true, func(context.Context) (bool, error) {
		t.requireSameRun(running)
		return false, nil
	})
	t.must(t.ctx.Err())
}

// restartDuring kills the deployer, calls the function `meanwhile`, and starts the deployer again.
func (t *testContext) restartDuring(meanwhile func()) {
	t.require(t.alone, "a check that restarts the deployer must run alone")
	t.must(t.env.deployer.Kill())
	meanwhile()
	t.must(t.env.startSubject(t.ctx))
}

// restartAndWait restarts the deployer and waits until the new instance has begun to process the items that existed
// when it started. To detect that, restartAndWait deploys another item while the deployer is stopped, and waits for the
// end of the run of this item. The deployer may process the items of the check after that item, so the caller must
// still wait for them.
func (t *testContext) restartAndWait() {
	meanwhile := t.item("meanwhile", t.env.subject.Valid)
	t.restartDuring(func() { meanwhile.createAndTrigger() })
	meanwhile.waitFor(t.getBounds().Start, "finished", isFinal)
}

// isFinal reports whether the run of an item has ended.
func isFinal(di item) bool { return contract.IsFinal(di.Status.Phase) }

// hasFinishedJob reports whether the item has a job ID and the job has ended.
func hasFinishedJob(di item) bool {
	return di.Status.JobID != "" && di.Status.JobID == di.Status.JobIDFinished
}

// isWorking reports whether a run is in progress when an item has this phase.
func isWorking(phase lsv1alpha1.DeployItemPhase) bool {
	return slices.Contains([]lsv1alpha1.DeployItemPhase{phases.Init, phases.Progressing, phases.InitDelete, phases.Deleting}, phase)
}

// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// option changes an item before it is created or patched.
type option func(item)

func withTarget(name string) option {
	return func(di item) { di.Spec.Target = &lsv1alpha1.ObjectReference{Name: name, Namespace: di.Namespace} }
}

func withTimeout(d time.Duration) option {
	return func(di item) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

func withAnnotation(key, value string) option {
	return func(di item) {
		if di.Annotations == nil {
			di.Annotations = map[string]string{}
		}
		di.Annotations[key] = value
	}
}

// testItem is a deploy item of a check. Its methods do what Landscaper or a user does with the item, or wait for the
// deployer. The methods end the check if a call fails or if the deployer takes too long.
type testItem struct {
	t      *testContext
	key    types.NamespacedName
	config func(types.NamespacedName) any
}

// create creates the item. Under the job-ID revision, the item has no job yet. Under the annotation revision, create
// also requests the first run.
func (i *testItem) create(options ...option) {
	subject := i.t.env.subject
	di := i.t.env.ls.Item(i.key.Namespace, i.key.Name, subject.Type, i.config(i.key))
	if subject.Target != nil {
		withTarget(targetName)(di)
	}
	for _, o := range options {
		o(di)
	}
	i.t.must(i.t.env.ls.Create(i.t.ctx, di))
}

// createAndTrigger creates the item and requests its first run.
func (i *testItem) createAndTrigger(options ...option) {
	i.create(options...)
	if i.t.usesJobs() {
		i.requestRun()
	}
}

// requestRun requests a run. It returns the ID of the new job, or "" if the revision has no jobs.
func (i *testItem) requestRun() string {
	id, err := i.t.env.ls.Trigger(i.t.ctx, i.key)
	i.t.must(err)
	return id
}

// patch patches the item as a user who has the necessary permissions.
func (i *testItem) patch(o option) item {
	di := i.get()
	old := di.DeepCopy()
	o(di)
	i.t.must(i.t.env.client.Patch(i.t.ctx, di, client.MergeFrom(old)))
	return di
}

// configure replaces the configuration of the item.
func (i *testItem) configure(config func(types.NamespacedName) any) {
	i.t.must(i.t.env.ls.Update(i.t.ctx, i.key, config(i.key)))
}

// setOperation sets the operation annotation.
func (i *testItem) setOperation(op lsv1alpha1.Operation) {
	i.t.must(i.t.env.ls.SetOperation(i.t.ctx, i.key, op))
}

// requestInterrupt interrupts the job of the item as Landscaper does.
func (i *testItem) requestInterrupt() { i.t.must(i.t.env.ls.Interrupt(i.t.ctx, i.key)) }

// markDeleted sets the deletion timestamp of the item.
func (i *testItem) markDeleted() { i.t.must(i.t.env.ls.MarkForDeletion(i.t.ctx, i.key)) }

// delete requests the deletion of the item.
func (i *testItem) delete() {
	i.markDeleted()
	if i.t.usesJobs() {
		_, err := i.t.env.ls.Trigger(i.t.ctx, i.key)
		i.t.must(client.IgnoreNotFound(err)) // if the item no longer exists, the deployer did not wait for the job, which another check reports
	}
}

// allowSuccess lets the run of a slow item succeed. It does nothing if the item is already deleted.
func (i *testItem) allowSuccess() {
	if finish := i.t.env.subject.Finish; finish != nil {
		i.t.must(client.IgnoreNotFound(finish(i.t.ctx, i.t.env.client, i.key)))
	}
}

// ignoreInCleanup marks the item as one that the deployer must not process. The cleanup then does not wait for the
// deployer to delete the item.
func (i *testItem) ignoreInCleanup() { i.t.ns.foreign[i.key.Name] = true }

func (i *testItem) get() item {
	di, err := i.t.env.ls.Get(i.t.ctx, i.key)
	i.t.must(err)
	return di
}

// isDeployed reports whether the objects that the item deploys exist.
func (i *testItem) isDeployed() bool {
	ok, err := i.t.env.subject.Deployed(i.t.ctx, i.t.env.client, i.key)
	i.t.must(err)
	return ok
}

// requireUninstalled requires that the objects of a deleted item no longer exist. It checks nothing if the subject
// cannot report whether they exist.
func (i *testItem) requireUninstalled() {
	if i.t.env.subject.Deployed != nil {
		i.t.require(!i.isDeployed(), "the item is gone, but its deployed objects still exist")
	}
}

// getRecordedVersions returns the versions of the item that have been recorded so far. The newest versions may still be
// missing.
func (i *testItem) getRecordedVersions() []item { return i.t.ns.history.GetVersions(i.key.Name) }

// getVersions returns all versions of the item that have been stored so far.
func (i *testItem) getVersions() []item {
	ctx, cancel := context.WithTimeout(i.t.ctx, i.t.getBounds().Finish)
	defer cancel()
	i.t.must(i.t.ns.history.Sync(ctx))
	return i.getRecordedVersions()
}

// waitFor waits until the item meets a condition.
func (i *testItem) waitFor(bound time.Duration, what string, ok func(item) bool) item {
	ctx, cancel := context.WithTimeout(i.t.ctx, bound)
	defer cancel()
	di, err := i.t.env.ls.WaitFor(ctx, i.key, func(di item) (bool, error) { return ok(di), nil })
	return i.requireInTime(di, err, what, bound)
}

// waitUntil waits until the item meets a condition. The time limit is that of a run.
func (i *testItem) waitUntil(what string, ok func(item) bool) item {
	return i.waitFor(i.t.getBounds().Finish, what, ok)
}

// waitUntilFinished waits for the end of the run that was requested last.
func (i *testItem) waitUntilFinished() item {
	ctx, cancel := context.WithTimeout(i.t.ctx, i.t.getBounds().Finish)
	defer cancel()
	di, err := i.t.env.ls.WaitUntilFinished(ctx, i.key)
	return i.requireInTime(di, err, "finish", i.t.getBounds().Finish)
}

// requireInTime returns di if err is nil. Otherwise it ends the check with a failure: the item did not meet a condition
// in time.
func (i *testItem) requireInTime(di item, err error, what string, bound time.Duration) item {
	if err != nil && di != nil && errors.Is(err, context.DeadlineExceeded) {
		i.t.fail("the item did not %s within %s: %s", what, bound, formatState(di))
	}
	i.t.must(err)
	return di
}

// requireSucceeded waits for the end of the run and requires that the run succeeded.
func (i *testItem) requireSucceeded() item {
	di := i.waitUntilFinished()
	i.t.require(di.Status.Phase == phases.Succeeded, "the item ended as %q%s", di.Status.Phase, formatError(di))
	return di
}

// allowSuccessAndWait lets a slow item succeed and waits for the end of its run.
func (i *testItem) allowSuccessAndWait() item {
	i.allowSuccess()
	if i.t.usesJobs() {
		return i.waitUntilFinished()
	}
	return i.waitUntil("finish", isFinal)
}

// waitForOperationRemoved waits until the operation annotation of a finished item is removed.
func (i *testItem) waitForOperationRemoved() {
	i.waitUntil("lose its operation annotation", func(di item) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })
}

// waitForAbortRemoved waits until the annotations of an abort are removed.
func (i *testItem) waitForAbortRemoved() {
	i.waitUntil("lose its annotations operation and abort-time", func(di item) bool {
		_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
		_, since := di.Annotations[contract.AbortTimestampAnnotation]
		return !operation && !since
	})
}

// waitUntilUnchanged waits until the item has not been written for Bounds.Quiet.
func (i *testItem) waitUntilUnchanged() {
	last := ""
	err := wait.PollUntilContextTimeout(i.t.ctx, i.t.getBounds().Quiet, i.t.getBounds().Finish, true, func(context.Context) (bool, error) {
		now := i.get().ResourceVersion
		same := now == last
		last = now
		return same, nil
	})
	i.t.require(err == nil, "the item is written repeatedly")
}

// waitForDeletion waits until the item is deleted and its whole history is recorded.
func (i *testItem) waitForDeletion() { i.waitForDeletionWithin(i.t.getBounds().Finish) }

// waitForDeletionWithin waits until the item is deleted and its whole history is recorded. The check fails if that
// takes longer than the given time, or if the job of the deletion ends while the item still exists.
func (i *testItem) waitForDeletionWithin(bound time.Duration) {
	i.waitForDeletionOr(bound, func(di item) bool {
		if i.t.usesJobs() && hasFinishedJob(di) {
			i.t.fail("the job of the deletion has ended, but the item still exists: %s", formatState(di))
		}
		return false
	})
	i.getVersions()
}

// waitForDeletionOr waits until the item is deleted or meets a condition.
func (i *testItem) waitForDeletionOr(bound time.Duration, ok func(item) bool) {
	var last item
	err := wait.PollUntilContextTimeout(i.t.ctx, pollInterval, bound, true, func(ctx context.Context) (bool, error) {
		di, err := i.t.env.ls.Get(ctx, i.key)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		last = di
		return ok(di), nil
	})
	if wait.Interrupted(err) && last != nil {
		i.t.fail("the item was not deleted within %s: finalizers %v, %s", bound, last.Finalizers, formatState(last))
	}
	i.t.must(err)
}

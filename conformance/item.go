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

// deploy creates the item and requests its first run.
func (i *testItem) deploy(options ...option) {
	i.create(options...)
	if i.t.jobs() {
		i.trigger()
	}
}

// trigger requests a run. It returns the ID of the new job, or "" if the revision has no jobs.
func (i *testItem) trigger() string {
	id, err := i.t.env.ls.Trigger(i.t.ctx, i.key)
	i.t.must(err)
	return id
}

// change patches the item as a user who has the necessary permissions.
func (i *testItem) change(o option) item {
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

// operate sets the operation annotation.
func (i *testItem) operate(op lsv1alpha1.Operation) { i.t.must(i.t.env.ls.Operate(i.t.ctx, i.key, op)) }

// interrupt interrupts the job of the item as Landscaper does.
func (i *testItem) interrupt() { i.t.must(i.t.env.ls.Interrupt(i.t.ctx, i.key)) }

// mark sets the deletion timestamp of the item.
func (i *testItem) mark() { i.t.must(i.t.env.ls.Mark(i.t.ctx, i.key)) }

// delete requests the deletion of the item.
func (i *testItem) delete() {
	i.mark()
	if i.t.jobs() {
		_, err := i.t.env.ls.Trigger(i.t.ctx, i.key)
		i.t.must(client.IgnoreNotFound(err)) // if the item no longer exists, the deployer did not wait for the job, which another check reports
	}
}

// letFinish lets the run of a slow item succeed. It does nothing if the item is already deleted.
func (i *testItem) letFinish() {
	if finish := i.t.env.subject.Finish; finish != nil {
		i.t.must(client.IgnoreNotFound(finish(i.t.ctx, i.t.env.client, i.key)))
	}
}

// leaveAlone marks the item as one that the deployer must not process. The cleanup then does not wait for the deployer
// to delete the item.
func (i *testItem) leaveAlone() { i.t.ns.foreign[i.key.Name] = true }

func (i *testItem) get() item {
	di, err := i.t.env.ls.Get(i.t.ctx, i.key)
	i.t.must(err)
	return di
}

// deployed reports whether the objects that the item deploys exist.
func (i *testItem) deployed() bool {
	ok, err := i.t.env.subject.Deployed(i.t.ctx, i.t.env.client, i.key)
	i.t.must(err)
	return ok
}

// uninstalled requires that the objects of a deleted item no longer exist. It checks nothing if the subject cannot
// report whether they exist.
func (i *testItem) uninstalled() {
	if i.t.env.subject.Deployed != nil {
		i.t.require(!i.deployed(), "the item is gone, but its deployed objects still exist")
	}
}

// recorded returns the versions of the item that have been recorded so far. The newest versions may still be missing.
func (i *testItem) recorded() []item { return i.t.ns.history.Versions(i.key.Name) }

// versions returns all versions of the item that have been stored so far.
func (i *testItem) versions() []item {
	ctx, cancel := context.WithTimeout(i.t.ctx, i.t.bounds().Finish)
	defer cancel()
	i.t.must(i.t.ns.history.Sync(ctx))
	return i.recorded()
}

// await waits until the item meets a condition.
func (i *testItem) await(bound time.Duration, what string, ok func(item) bool) item {
	ctx, cancel := context.WithTimeout(i.t.ctx, bound)
	defer cancel()
	di, err := i.t.env.ls.Await(ctx, i.key, func(di item) (bool, error) { return ok(di), nil })
	return i.inTime(di, err, what, bound)
}

// until waits until the item meets a condition. The time limit is that of a run.
func (i *testItem) until(what string, ok func(item) bool) item {
	return i.await(i.t.bounds().Finish, what, ok)
}

// finished waits for the end of the run that was requested last.
func (i *testItem) finished() item {
	ctx, cancel := context.WithTimeout(i.t.ctx, i.t.bounds().Finish)
	defer cancel()
	di, err := i.t.env.ls.AwaitFinished(ctx, i.key)
	return i.inTime(di, err, "finish", i.t.bounds().Finish)
}

// inTime returns di if err is nil. Otherwise it ends the check with a failure: the item did not meet a condition in
// time.
func (i *testItem) inTime(di item, err error, what string, bound time.Duration) item {
	if err != nil && di != nil && errors.Is(err, context.DeadlineExceeded) {
		i.t.fail("the item did not %s within %s: %s", what, bound, stateOf(di))
	}
	i.t.must(err)
	return di
}

// succeeded waits for the end of the run and requires that the run succeeded.
func (i *testItem) succeeded() item {
	di := i.finished()
	i.t.require(di.Status.Phase == phases.Succeeded, "the item ended as %q%s", di.Status.Phase, errorOf(di))
	return di
}

// finish lets a slow item succeed and waits for the end of its run.
func (i *testItem) finish() item {
	i.letFinish()
	if i.t.jobs() {
		return i.finished()
	}
	return i.until("finish", isFinal)
}

// settled waits until the operation annotation of a finished item is removed.
func (i *testItem) settled() {
	i.until("lose its operation annotation", func(di item) bool { return di.Annotations[lsv1alpha1.OperationAnnotation] == "" })
}

// notAborting waits until the annotations of an abort are removed.
func (i *testItem) notAborting() {
	i.until("lose its annotations operation and abort-time", func(di item) bool {
		_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
		_, since := di.Annotations[contract.AbortTimestampAnnotation]
		return !operation && !since
	})
}

// comesToRest waits until the item has not been written for Bounds.Quiet.
func (i *testItem) comesToRest() {
	last := ""
	err := wait.PollUntilContextTimeout(i.t.ctx, i.t.bounds().Quiet, i.t.bounds().Finish, true, func(context.Context) (bool, error) {
		now := i.get().ResourceVersion
		same := now == last
		last = now
		return same, nil
	})
	i.t.require(err == nil, "the item is written repeatedly")
}

// gone waits until the item is deleted and its whole history is recorded.
func (i *testItem) gone() { i.goneWithin(i.t.bounds().Finish) }

// goneWithin waits until the item is deleted and its whole history is recorded. The check fails if that takes longer
// than the given time, or if the job of the deletion ends while the item still exists.
func (i *testItem) goneWithin(bound time.Duration) {
	i.goneOr(bound, func(di item) bool {
		if i.t.jobs() && hasFinishedJob(di) {
			i.t.fail("the job of the deletion has ended, but the item still exists: %s", stateOf(di))
		}
		return false
	})
	i.versions()
}

// goneOr waits until the item is deleted or meets a condition.
func (i *testItem) goneOr(bound time.Duration, ok func(item) bool) {
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
		i.t.fail("the item was not deleted within %s: finalizers %v, %s", bound, last.Finalizers, stateOf(last))
	}
	i.t.must(err)
}

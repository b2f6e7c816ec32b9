// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/contract"
)

const (
	// actors is the number of actors. An actor performs one operation at a time, and spends most of the time waiting
	// for its item.
	actors = 24
	// pace is the time between two steps of an actor.
	pace = 300 * time.Millisecond
)

// itemUser acts as Landscaper and as the users for some of the items.
type itemUser struct {
	*env

	items  []*item
	random *rand.Rand
}

// operation describes a method of an actor that is called for one of its items. A method with a higher weight is called
// more often.
type operation struct {
	name   string
	weight int
	act    func(a *itemUser, ctx context.Context, it *item) error
}

var operations = []operation{
	{"update", 25, (*itemUser).update},
	{"run again", 20, (*itemUser).startSameConfig},
	{"drift", 25, (*itemUser).changeObject},
	{"annotate", 6, (*itemUser).setAnnotation},
	{"break the configuration", 7, (*itemUser).invalidate},
	{"let hang", 5, (*itemUser).startSlowJob},
	{"interrupt", 6, (*itemUser).startAndInterrupt},
	{"abort", 6, (*itemUser).startAndAbort},
	{"overtake", 6, (*itemUser).startOverlappingJob},
	{"delete", 8, (*itemUser).remove},
}

// ends contains the operations for an item whose job does not end by itself.
var ends = []operation{
	{"release", 3, (*itemUser).release},
	{"interrupt the open job", 2, (*itemUser).interruptJob},
	{"abort the open job", 2, (*itemUser).abortJob},
	{"overtake the open job", 1, (*itemUser).startOverlappingJob},
	{"delete while the job is open", 1, (*itemUser).remove},
}

// selectOperation returns a random operation. An operation with a higher weight is more likely.
func selectOperation(random *rand.Rand, from []operation) operation {
	sum := 0
	for _, op := range from {
		sum += op.weight
	}
	n := random.IntN(sum)
	for _, op := range from {
		if n -= op.weight; n < 0 {
			return op
		}
	}
	return from[0]
}

// run creates all items and then performs random operations until the context `trouble` is cancelled. Before play
// returns, it ends the jobs that do not end by themselves.
func (a *itemUser) run(ctx, trouble context.Context) error {
	for _, it := range a.items {
		if err := a.do(ctx, operation{name: "create", act: (*itemUser).create}, it); err != nil {
			return err
		}
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-trouble.Done():
			return a.finishOpenJobs(ctx)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		it := a.items[a.random.IntN(len(a.items))]
		op := operation{name: "create again", act: (*itemUser).create}
		switch {
		case it.exists && it.want.isOpen() && !it.calledOff:
			op = selectOperation(a.random, ends)
		case it.exists:
			op = selectOperation(a.random, operations)
		}
		if err := a.do(ctx, op, it); err != nil {
			return err
		}
	}
}

// do performs an operation.
func (a *itemUser) do(ctx context.Context, op operation, it *item) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a.operations.Add(1)
	if err := op.act(a, ctx, it); err != nil {
		return fmt.Errorf("%s %s (job %s): %w", op.name, it.name, it.job, err)
	}
	return nil
}

// finishOpenJobs ends the jobs that do not end by themselves.
func (a *itemUser) finishOpenJobs(ctx context.Context) error {
	for _, it := range a.items {
		if it.exists && it.want.isOpen() && !it.calledOff {
			if err := a.do(ctx, selectOperation(a.random, ends[:3]), it); err != nil {
				return err
			}
		}
	}
	return nil
}

// create creates an item. If an earlier item of the same name still exists, create waits until the earlier item is
// gone.
func (a *itemUser) create(ctx context.Context, it *item) error {
	if err := a.waitFor(ctx, it, isGone); err != nil {
		return err
	}
	it.want, it.exists, it.calledOff = it.newWant(a.random), true, false
	err := a.retryUntilSuccess(ctx, func(ctx context.Context) error {
		di := a.Landscaper.Item(a.Namespace, it.name, it.kind.t, a.config(it))
		if it.kind.objects {
			di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		}
		return a.Landscaper.Create(ctx, di)
	}, apierrors.IsAlreadyExists) // the item was created by an earlier attempt whose response was lost
	if err != nil {
		return err
	}
	return a.startJob(ctx, it)
}

// startJob starts a job.
func (a *itemUser) startJob(ctx context.Context, it *item) error {
	it.job, it.calledOff = fmt.Sprintf("%s-job-%d", it.name, a.jobs.Add(1)), false
	a.history.recordJob(it.name, it.job)
	return a.retryUntilSuccess(ctx, func(ctx context.Context) error { return a.Landscaper.TriggerWithJobID(ctx, a.Key(it.name), it.job) })
}

// configure changes the configuration of an item without starting a job.
func (a *itemUser) configure(ctx context.Context, it *item, want want) error {
	it.want = want
	if err := a.retryUntilSuccess(ctx, func(ctx context.Context) error { return a.Landscaper.Update(ctx, a.Key(it.name), a.config(it)) }); err != nil {
		return err
	}
	return a.setTimeout(ctx, it)
}

// updateAndStart waits until the last job of an item has ended, changes the configuration of the item, and starts a
// job.
func (a *itemUser) updateAndStart(ctx context.Context, it *item, want want) error {
	if err := a.waitFor(ctx, it, isJobFinished); err != nil {
		return err
	}
	if err := a.configure(ctx, it, want); err != nil {
		return err
	}
	return a.startJob(ctx, it)
}

func (a *itemUser) update(ctx context.Context, it *item) error {
	return a.updateAndStart(ctx, it, it.newWant(a.random))
}

func (a *itemUser) startSameConfig(ctx context.Context, it *item) error {
	if err := a.waitFor(ctx, it, isJobFinished); err != nil {
		return err
	}
	return a.startJob(ctx, it)
}

func (a *itemUser) invalidate(ctx context.Context, it *item) error {
	want := it.newWant(a.random)
	want.invalid = true
	return a.updateAndStart(ctx, it, want)
}

// startSlowJob starts a job. The job of a mock item runs until another operation or the timeout of the item ends the
// job.
func (a *itemUser) startSlowJob(ctx context.Context, it *item) error {
	want := it.newWant(a.random)
	if !it.kind.objects {
		want.outcome = phases.Progressing
		if a.random.IntN(2) == 0 {
			want.timeout = time.Duration(1+a.random.IntN(5)) * time.Second
		}
	}
	return a.updateAndStart(ctx, it, want)
}

// startOverlappingJob starts a job although the last job may still be running.
func (a *itemUser) startOverlappingJob(ctx context.Context, it *item) error {
	if err := a.configure(ctx, it, it.newWant(a.random)); err != nil {
		return err
	}
	return a.startJob(ctx, it)
}

// release changes the configuration of an item so that its running job ends.
func (a *itemUser) release(ctx context.Context, it *item) error {
	return a.configure(ctx, it, it.newWant(a.random))
}

func (a *itemUser) startAndInterrupt(ctx context.Context, it *item) error {
	if err := a.update(ctx, it); err != nil {
		return err
	}
	return a.interruptJob(ctx, it)
}

func (a *itemUser) interruptJob(ctx context.Context, it *item) error {
	it.calledOff = true
	return a.retryUntilSuccess(ctx, func(ctx context.Context) error { return a.Landscaper.Interrupt(ctx, a.Key(it.name)) })
}

func (a *itemUser) startAndAbort(ctx context.Context, it *item) error {
	if err := a.update(ctx, it); err != nil {
		return err
	}
	return a.abortJob(ctx, it)
}

// abortJob requests an abort of the current job. It waits until the abort is complete, because the abort could
// otherwise affect the next job. A job that has not begun cannot be aborted.
func (a *itemUser) abortJob(ctx context.Context, it *item) error {
	it.calledOff = true
	err := a.waitFor(ctx, it, func(di *lsv1alpha1.DeployItem) bool {
		return isJobFinished(di) || di != nil && !contract.IsFinal(di.Status.Phase)
	})
	if err != nil {
		return err
	}
	err = a.retryUntilSuccess(ctx, func(ctx context.Context) error {
		return a.Landscaper.SetOperation(ctx, a.Key(it.name), contract.AbortOperation)
	})
	if err != nil {
		return err
	}
	return a.waitFor(ctx, it, func(di *lsv1alpha1.DeployItem) bool {
		return isJobFinished(di) && di.Annotations[lsv1alpha1.OperationAnnotation] == ""
	})
}

// remove deletes an item, sometimes while a job is running.
func (a *itemUser) remove(ctx context.Context, it *item) error {
	if a.random.IntN(2) == 0 && !it.want.isOpen() {
		if err := a.waitFor(ctx, it, isJobFinished); err != nil {
			return err
		}
	}
	// Remove the timeout. Otherwise, it could also end the deletion, and no other job for the deletion would be
	// created.
	if it.want.timeout > 0 {
		it.want.timeout = 0
		if err := a.setTimeout(ctx, it); err != nil {
			return err
		}
	}
	it.exists = false
	if err := a.retryUntilSuccess(ctx, func(ctx context.Context) error { return a.Landscaper.MarkForDeletion(ctx, a.Key(it.name)) }); err != nil {
		return err
	}
	it.job = fmt.Sprintf("%s-job-%d", it.name, a.jobs.Add(1))
	a.history.recordJob(it.name, it.job)
	return a.retryUntilSuccess(ctx, func(ctx context.Context) error { return a.Landscaper.TriggerWithJobID(ctx, a.Key(it.name), it.job) }, apierrors.IsNotFound)
}

func (a *itemUser) setAnnotation(ctx context.Context, it *item) error {
	note := map[string]string{"example.com/note": fmt.Sprint(a.random.IntN(10))}
	return a.retryUntilSuccess(ctx, func(ctx context.Context) error { return a.Landscaper.SetAnnotations(ctx, a.Key(it.name), note) })
}

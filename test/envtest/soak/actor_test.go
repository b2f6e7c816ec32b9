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

// actor acts as Landscaper and as the users for some of the items.
type actor struct {
	*env

	items  []*item
	random *rand.Rand
}

// operation describes a method of an actor that is called for one of its items. A method with a higher weight is called
// more often.
type operation struct {
	name   string
	weight int
	act    func(a *actor, ctx context.Context, it *item) error
}

var operations = []operation{
	{"update", 25, (*actor).update},
	{"run again", 20, (*actor).again},
	{"drift", 25, (*actor).drift},
	{"annotate", 6, (*actor).annotate},
	{"break the configuration", 7, (*actor).invalidate},
	{"let hang", 5, (*actor).hang},
	{"interrupt", 6, (*actor).interrupt},
	{"abort", 6, (*actor).abort},
	{"overtake", 6, (*actor).overtake},
	{"delete", 8, (*actor).remove},
}

// ends contains the operations for an item whose job does not end by itself.
var ends = []operation{
	{"release", 3, (*actor).release},
	{"interrupt the open job", 2, (*actor).interruptNow},
	{"abort the open job", 2, (*actor).abortNow},
	{"overtake the open job", 1, (*actor).overtake},
	{"delete while the job is open", 1, (*actor).remove},
}

// pick returns a random operation. An operation with a higher weight is more likely.
func pick(random *rand.Rand, from []operation) operation {
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

// play creates all items and then performs random operations until the context `trouble` is cancelled. Before play
// returns, it ends the jobs that do not end by themselves.
func (a *actor) play(ctx, trouble context.Context) error {
	for _, it := range a.items {
		if err := a.do(ctx, operation{name: "create", act: (*actor).create}, it); err != nil {
			return err
		}
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-trouble.Done():
			return a.tidy(ctx)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		it := a.items[a.random.IntN(len(a.items))]
		op := operation{name: "create again", act: (*actor).create}
		switch {
		case it.exists && it.want.open() && !it.calledOff:
			op = pick(a.random, ends)
		case it.exists:
			op = pick(a.random, operations)
		}
		if err := a.do(ctx, op, it); err != nil {
			return err
		}
	}
}

// do performs an operation.
func (a *actor) do(ctx context.Context, op operation, it *item) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a.operations.Add(1)
	if err := op.act(a, ctx, it); err != nil {
		return fmt.Errorf("%s %s (job %s): %w", op.name, it.name, it.job, err)
	}
	return nil
}

// tidy ends the jobs that do not end by themselves.
func (a *actor) tidy(ctx context.Context) error {
	for _, it := range a.items {
		if it.exists && it.want.open() && !it.calledOff {
			if err := a.do(ctx, pick(a.random, ends[:3]), it); err != nil {
				return err
			}
		}
	}
	return nil
}

// create creates an item. If an earlier item of the same name still exists, create waits until the earlier item is
// gone.
func (a *actor) create(ctx context.Context, it *item) error {
	if err := a.await(ctx, it, isGone); err != nil {
		return err
	}
	it.want, it.exists, it.calledOff = it.newWant(a.random), true, false
	err := a.insist(ctx, func(ctx context.Context) error {
		di := a.Landscaper.Item(a.Namespace, it.name, it.kind.t, a.config(it))
		if it.kind.objects {
			di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		}
		return a.Landscaper.Create(ctx, di)
	}, apierrors.IsAlreadyExists) // the item was created by an earlier attempt whose response was lost
	if err != nil {
		return err
	}
	return a.trigger(ctx, it)
}

// trigger starts a job.
func (a *actor) trigger(ctx context.Context, it *item) error {
	it.job, it.calledOff = fmt.Sprintf("%s-job-%d", it.name, a.jobs.Add(1)), false
	a.history.handOut(it.name, it.job)
	return a.insist(ctx, func(ctx context.Context) error { return a.Landscaper.TriggerAs(ctx, a.Key(it.name), it.job) })
}

// configure changes the configuration of an item without starting a job.
func (a *actor) configure(ctx context.Context, it *item, want want) error {
	it.want = want
	if err := a.insist(ctx, func(ctx context.Context) error { return a.Landscaper.Update(ctx, a.Key(it.name), a.config(it)) }); err != nil {
		return err
	}
	return a.setTimeout(ctx, it)
}

// change waits until the last job of an item has ended, changes the configuration of the item, and starts a job.
func (a *actor) change(ctx context.Context, it *item, want want) error {
	if err := a.await(ctx, it, isOver); err != nil {
		return err
	}
	if err := a.configure(ctx, it, want); err != nil {
		return err
	}
	return a.trigger(ctx, it)
}

func (a *actor) update(ctx context.Context, it *item) error {
	return a.change(ctx, it, it.newWant(a.random))
}

func (a *actor) again(ctx context.Context, it *item) error {
	if err := a.await(ctx, it, isOver); err != nil {
		return err
	}
	return a.trigger(ctx, it)
}

func (a *actor) invalidate(ctx context.Context, it *item) error {
	want := it.newWant(a.random)
	want.invalid = true
	return a.change(ctx, it, want)
}

// hang starts a job. The job of a mock item runs until another operation or the timeout of the item ends the job.
func (a *actor) hang(ctx context.Context, it *item) error {
	want := it.newWant(a.random)
	if !it.kind.objects {
		want.outcome = phases.Progressing
		if a.random.IntN(2) == 0 {
			want.timeout = time.Duration(1+a.random.IntN(5)) * time.Second
		}
	}
	return a.change(ctx, it, want)
}

// overtake starts a job although the last job may still be running.
func (a *actor) overtake(ctx context.Context, it *item) error {
	if err := a.configure(ctx, it, it.newWant(a.random)); err != nil {
		return err
	}
	return a.trigger(ctx, it)
}

// release changes the configuration of an item so that its running job ends.
func (a *actor) release(ctx context.Context, it *item) error {
	return a.configure(ctx, it, it.newWant(a.random))
}

func (a *actor) interrupt(ctx context.Context, it *item) error {
	if err := a.update(ctx, it); err != nil {
		return err
	}
	return a.interruptNow(ctx, it)
}

func (a *actor) interruptNow(ctx context.Context, it *item) error {
	it.calledOff = true
	return a.insist(ctx, func(ctx context.Context) error { return a.Landscaper.Interrupt(ctx, a.Key(it.name)) })
}

func (a *actor) abort(ctx context.Context, it *item) error {
	if err := a.update(ctx, it); err != nil {
		return err
	}
	return a.abortNow(ctx, it)
}

// abortNow requests an abort of the current job. It waits until the abort is complete, because the abort could
// otherwise affect the next job. A job that has not begun cannot be aborted.
func (a *actor) abortNow(ctx context.Context, it *item) error {
	it.calledOff = true
	err := a.await(ctx, it, func(di *lsv1alpha1.DeployItem) bool {
		return isOver(di) || di != nil && !contract.IsFinal(di.Status.Phase)
	})
	if err != nil {
		return err
	}
	err = a.insist(ctx, func(ctx context.Context) error {
		return a.Landscaper.Operate(ctx, a.Key(it.name), contract.AbortOperation)
	})
	if err != nil {
		return err
	}
	return a.await(ctx, it, func(di *lsv1alpha1.DeployItem) bool {
		return isOver(di) && di.Annotations[lsv1alpha1.OperationAnnotation] == ""
	})
}

// remove deletes an item, sometimes while a job is running.
func (a *actor) remove(ctx context.Context, it *item) error {
	if a.random.IntN(2) == 0 && !it.want.open() {
		if err := a.await(ctx, it, isOver); err != nil {
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
	if err := a.insist(ctx, func(ctx context.Context) error { return a.Landscaper.Mark(ctx, a.Key(it.name)) }); err != nil {
		return err
	}
	it.job = fmt.Sprintf("%s-job-%d", it.name, a.jobs.Add(1))
	a.history.handOut(it.name, it.job)
	return a.insist(ctx, func(ctx context.Context) error { return a.Landscaper.TriggerAs(ctx, a.Key(it.name), it.job) }, apierrors.IsNotFound)
}

func (a *actor) annotate(ctx context.Context, it *item) error {
	note := map[string]string{"example.com/note": fmt.Sprint(a.random.IntN(10))}
	return a.insist(ctx, func(ctx context.Context) error { return a.Landscaper.Annotate(ctx, a.Key(it.name), note) })
}

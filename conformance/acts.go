// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// mod changes an item before it is created or patched.
type mod func(item)

func withTarget(name string) mod {
	return func(di item) { di.Spec.Target = &lsv1alpha1.ObjectReference{Name: name, Namespace: di.Namespace} }
}

func withTimeout(d time.Duration) mod {
	return func(di item) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

func withAnnotation(key, value string) mod {
	return func(di item) {
		if di.Annotations == nil {
			di.Annotations = map[string]string{}
		}
		di.Annotations[key] = value
	}
}

// make creates an item, without a job yet.
func (p *probe) make(name string, config func(types.NamespacedName) any, mods ...mod) {
	di := p.ls.Item(p.ns, name, p.subject.Type, config(p.key(name)))
	if p.subject.Target != nil {
		withTarget(targetName)(di)
	}
	for _, m := range mods {
		m(di)
	}
	p.must(p.ls.Create(p.ctx, di))
}

// deploy creates an item and asks for its first run.
func (p *probe) deploy(name string, config func(types.NamespacedName) any, mods ...mod) {
	p.make(name, config, mods...)
	if p.jobs() {
		p.trigger(name)
	}
}

// trigger asks for a run and returns the job's ID, if there are jobs.
func (p *probe) trigger(name string) string {
	id, err := p.ls.Trigger(p.ctx, p.key(name))
	p.must(err)
	return id
}

// invalid makes invalid configurations with a note.
func (p *probe) invalid(note string) func(types.NamespacedName) any {
	return func(key types.NamespacedName) any { return p.subject.Invalid(key, note) }
}

// change changes the valid item as somebody does who has the right to.
func (p *probe) change(m mod) item { return p.changeOf("valid", m) }

// changeOf is change for any item.
func (p *probe) changeOf(name string, m mod) item {
	di := p.get(name)
	old := di.DeepCopy()
	m(di)
	p.must(p.client.Patch(p.ctx, di, client.MergeFrom(old)))
	return di
}

// operate sets the operation annotation.
func (p *probe) operate(name string, op lsv1alpha1.Operation) {
	p.must(p.ls.Operate(p.ctx, p.key(name), op))
}

func (p *probe) get(name string) item {
	di, err := p.ls.Get(p.ctx, p.key(name))
	p.must(err)
	return di
}

// finished waits for the end of the run that was asked for last.
func (p *probe) finished(name string) item {
	ctx, cancel := context.WithTimeout(p.ctx, p.subject.Bounds.Finish)
	defer cancel()
	di, err := p.ls.AwaitFinished(ctx, p.key(name))
	p.inTime(di, err, "finished", p.subject.Bounds.Finish)
	return di
}

// inTime ends the check when a wait for an item ended with an error.
func (p *probe) inTime(di item, err error, what string, bound time.Duration) {
	if err != nil && di != nil && errors.Is(err, context.DeadlineExceeded) {
		p.fail("not %s within %s: %s", what, bound, stateOf(di))
	}
	p.must(err)
}

// succeeds deploys the item "valid" and waits for its success.
func (p *probe) succeeds(mods ...mod) item {
	p.deploy("valid", p.subject.Valid, mods...)
	di := p.finished("valid")
	p.hold(di.Status.Phase == phases.Succeeded, "a valid item ended as %q%s", di.Status.Phase, errorOf(di))
	return di
}

// succeededAgain waits for the success of another run.
func (p *probe) succeededAgain(name string) item {
	di := p.finished(name)
	p.hold(di.Status.Phase == phases.Succeeded, "the item ended as %q%s", di.Status.Phase, errorOf(di))
	return di
}

// await waits until an item is as wanted.
func (p *probe) await(bound time.Duration, name, what string, ok func(item) bool) item {
	ctx, cancel := context.WithTimeout(p.ctx, bound)
	defer cancel()
	di, err := p.ls.Await(ctx, p.key(name), func(di item) (bool, error) { return ok(di), nil })
	p.inTime(di, err, what, bound)
	return di
}

func (p *probe) until(name, what string, ok func(item) bool) item {
	return p.await(p.subject.Bounds.Finish, name, what, ok)
}

// working deploys the item "slow" and waits until it is in work.
func (p *probe) working(mods ...mod) item {
	p.deploy("slow", p.subject.Slow, mods...)
	return p.until("slow", "in phase Progressing", func(di item) bool { return di.Status.Phase == phases.Progressing })
}

// finish lets a slow item end and waits for it.
func (p *probe) finish(name string) item {
	if p.subject.Finish != nil {
		p.must(p.subject.Finish(p.ctx, p.client, p.key(name)))
	}
	if p.jobs() {
		return p.finished(name)
	}
	return p.until(name, "finished", func(di item) bool { return contract.IsFinal(di.Status.Phase) })
}

// delete asks for the deletion of an item.
func (p *probe) delete(name string) {
	p.must(p.ls.Mark(p.ctx, p.key(name)))
	if p.jobs() {
		_, err := p.ls.Trigger(p.ctx, p.key(name))
		p.must(client.IgnoreNotFound(err)) // another check is about deployers that do not wait
	}
}

// gone waits until an item is not there any more, and its whole history is recorded.
func (p *probe) gone(name string) { p.goneWithin(p.subject.Bounds.Finish, name) }

// goneWithin is gone with a bound of its own. A deletion whose job ended as failed is not waited for.
func (p *probe) goneWithin(bound time.Duration, name string) {
	p.goneOr(bound, name, func(di item) bool {
		if over := p.jobs() && di.Status.JobID != "" && di.Status.JobID == di.Status.JobIDFinished; over {
			p.fail("the job of the deletion ended, and the item is still there: %s", stateOf(di))
		}
		return false
	})
	p.versions(name)
}

// goneOr waits until an item is not there any more, or as wanted.
func (p *probe) goneOr(bound time.Duration, name string, ok func(item) bool) {
	var last item
	err := wait.PollUntilContextTimeout(p.ctx, 20*time.Millisecond, bound, true, func(ctx context.Context) (bool, error) {
		di, err := p.ls.Get(ctx, p.key(name))
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
		p.fail("not deleted within %s: finalizers %v, %s", bound, last.Finalizers, stateOf(last))
	}
	p.must(err)
}

// quiet holds that nobody writes an item any more: not before a later item went through, and not for a while after it.
func (p *probe) quiet(di item) {
	p.later()
	p.still(di)
}

// later lets a new item go through: by then the deployer has heard of all that was done before.
func (p *probe) later() {
	p.barrier++
	name := fmt.Sprintf("later-%d", p.barrier)
	p.deploy(name, p.subject.Valid)
	p.until(name, "finished", func(di item) bool { return contract.IsFinal(di.Status.Phase) })
}

// still holds that nobody writes an item for a while.
func (p *probe) still(di item) {
	now := di
	changed := func(ctx context.Context) (bool, error) {
		var err error
		now, err = p.ls.Get(ctx, p.key(di.Name))
		return err == nil && now.ResourceVersion != di.ResourceVersion, err
	}
	err := wait.PollUntilContextTimeout(p.ctx, 50*time.Millisecond, p.subject.Bounds.Quiet, true, changed)
	p.must(p.ctx.Err())
	switch {
	case err == nil:
		p.fail("the item was written; writers until now: %s; it is now: %s", strings.Join(strangers(now), ", "), stateOf(now))
	case apierrors.IsNotFound(err):
		p.fail("the item was deleted")
	case !wait.Interrupted(err):
		p.must(err)
	}
}

// versions are all stored versions of an item until now.
func (p *probe) versions(name string) []item {
	ctx, cancel := context.WithTimeout(p.ctx, p.subject.Bounds.Finish)
	defer cancel()
	p.must(p.history.Sync(ctx))
	return p.history.Versions(name)
}

// after are the versions from a given one on.
func (p *probe) after(di item) []item {
	versions := p.versions(di.Name)
	i := slices.IndexFunc(versions, func(v item) bool { return v.ResourceVersion == di.ResourceVersion })
	p.hold(i >= 0, "version %s of item %s was not recorded", di.ResourceVersion, di.Name)
	return versions[i+1:]
}

// deployed asks the subject's author whether something is deployed.
func (p *probe) deployed(name string) bool {
	ok, err := p.subject.Deployed(p.ctx, p.client, p.key(name))
	p.must(err)
	return ok
}

// restart kills the deployer, does something and starts it again.
func (p *probe) restart(meanwhile func()) {
	p.hold(p.alone, "a check that restarts the deployer has to be alone")
	p.must(p.deployer.kill())
	if meanwhile != nil {
		meanwhile()
	}
	next, err := launch(p.ctx, p.subject, p.config, p.kubeconfig)
	p.must(err)
	p.deployer = next
}

// isWorking tells that a phase is that of a run in progress.
func isWorking(phase lsv1alpha1.DeployItemPhase) bool {
	return slices.Contains([]lsv1alpha1.DeployItemPhase{phases.Init, phases.Progressing, phases.InitDelete, phases.Deleting}, phase)
}

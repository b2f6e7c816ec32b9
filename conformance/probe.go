// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type item = *lsv1alpha1.DeployItem

var phases = lsv1alpha1.DeployItemPhases

// targetName is the Target that items name; it matches the subject's selectors.
const targetName = "conformance"

// probe is one check at work: a namespace of its own whose whole history is recorded. Its methods end the check when
// something is not as promised.
type probe struct {
	*stage

	ctx     context.Context
	ns      string
	history *History
	foreign map[string]bool // items that the subject must not touch, so that it does not delete them either
	barrier int
	alone   bool // nobody else needs the deployer

	g       gomega.Gomega
	failure string
}

// enter makes a namespace with Context and Target and begins to record.
func (st *stage) enter(ctx context.Context) (*probe, error) {
	ns := &corev1.Namespace{}
	ns.GenerateName = "conformance-"
	if err := st.client.Create(ctx, ns); err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	p := &probe{stage: st, ctx: ctx, ns: ns.Name, foreign: map[string]bool{}}
	p.g = gomega.NewGomega(func(message string, _ ...int) { p.fail("%s", message) })
	var err error
	if p.history, err = Record(ctx, st.watcher, p.ns, st.revision); err != nil {
		return nil, err
	}
	if err := st.ls.EnsureContext(ctx, p.ns); err != nil {
		return nil, err
	}
	if st.subject.Target != nil {
		if err := p.makeTarget(targetName, st.subject.TargetLabels); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// makeTarget creates a Target with the subject's content.
func (p *probe) makeTarget(name string, labels map[string]string) error {
	spec, err := p.subject.Target(p.config)
	if err != nil {
		return fmt.Errorf("make content of Target: %w", err)
	}
	target := &lsv1alpha1.Target{Spec: spec}
	target.Namespace, target.Name, target.Labels = p.ns, name, labels
	if err := p.client.Create(p.ctx, target); err != nil {
		return fmt.Errorf("create Target: %w", err)
	}
	return nil
}

// do runs f to its end or to its first failure, and returns the failure; empty when there was none.
func (p *probe) do(ctx context.Context, f func(*probe)) string {
	p.ctx = ctx
	done := make(chan struct{})
	go func() { // fail ends this goroutine, as testing.T.FailNow does
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				p.failure = fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())
			}
		}()
		f(p)
	}()
	<-done
	return p.failure
}

// fail ends the check.
func (p *probe) fail(format string, args ...any) {
	p.failure = strings.TrimSpace(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// must ends the check when err is not nil.
func (p *probe) must(err error) {
	if err != nil {
		p.fail("%v", err)
	}
}

// hold ends the check when ok is false.
func (p *probe) hold(ok bool, format string, args ...any) {
	if !ok {
		p.fail(format, args...)
	}
}

func (p *probe) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: p.ns, Name: name}
}

// jobs reports whether the revision has jobs: runs are asked for by handing out job IDs.
func (p *probe) jobs() bool { return features[p.revision].jobs }

// leave judges the history and removes everything.
func (p *probe) leave() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.subject.Bounds.Finish)
	defer cancel()
	err := p.history.Sync(ctx)
	p.history.Stop()
	p.judged.add(p.history)
	return errors.Join(err, p.clean(ctx))
}

// clean lets the deployer delete its items, takes the finalizers of what is left, and deletes the namespace.
func (p *probe) clean(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, p.subject.Bounds.Cleanup)
	defer cancel()
	list := &lsv1alpha1.DeployItemList{}
	gone := func(ctx context.Context) (bool, error) {
		if err := p.client.List(ctx, list, client.InNamespace(p.ns)); err != nil {
			return false, err
		}
		for i := range list.Items {
			if err := p.askForDeletion(ctx, &list.Items[i]); err != nil {
				return false, err
			}
		}
		return len(list.Items) == 0, nil
	}
	err := wait.PollUntilContextCancel(bounded, 20*time.Millisecond, true, gone)
	if err != nil && bounded.Err() == nil {
		return fmt.Errorf("clean up: %w", err)
	}
	for i := range list.Items {
		if err := p.release(ctx, &list.Items[i]); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	ns := &corev1.Namespace{}
	ns.Name = p.ns
	if err := p.client.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// askForDeletion deletes an item as Landscaper does. It is called until the item is gone: one whose run was still going on
// needs a job for its deletion afterwards.
func (p *probe) askForDeletion(ctx context.Context, di item) error {
	key := client.ObjectKeyFromObject(di)
	switch {
	case di.DeletionTimestamp == nil:
		if err := p.ls.Mark(ctx, key); client.IgnoreNotFound(err) != nil {
			return err
		}
	case p.jobs() && di.Status.JobID == di.Status.JobIDFinished && !p.foreign[di.Name]:
		if _, err := p.ls.Trigger(ctx, key); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if p.foreign[di.Name] {
		return p.release(ctx, di)
	}
	return nil
}

// release takes an item's finalizers.
func (p *probe) release(ctx context.Context, di item) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(p.client.Patch(ctx, di, patch))
}

// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var phases = lsv1alpha1.DeployItemPhases

const (
	// patience is the time limit of a step. It is long, because the machine may be slow.
	patience = 60 * time.Second
	// look is the interval at which a step polls.
	look = 40 * time.Millisecond
)

// step is one step of the story.
type step struct {
	name string
	do   func(*run, context.Context) error
}

// steps contains the steps that each item goes through.
var steps = []step{
	{"install", func(r *run, ctx context.Context) error { return r.runJob(ctx, first, r.create) }},
	{"update", func(r *run, ctx context.Context) error { return r.runJob(ctx, second, r.update) }},
	{"drift", (*run).changeObjects},
	{"abort", (*run).startAndInterrupt},
	{"update after the abort", func(r *run, ctx context.Context) error { return r.runJob(ctx, last, r.update) }},
	{"delete", (*run).delete},
}

// runSteps runs the steps until one of them fails.
func (r *run) runSteps(ctx context.Context) error {
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(ctx, patience)
		err := s.do(r, ctx)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// runJob starts a job with a value, waits until the job has succeeded, and requires that exactly the objects for this
// value exist.
func (r *run) runJob(ctx context.Context, value string, begin func(context.Context, string, bool) error) error {
	if err := begin(ctx, value, false); err != nil {
		return err
	}
	di, err := r.ls.WaitUntilFinished(ctx, r.key)
	if err != nil {
		return err
	}
	if di.Status.Phase != phases.Succeeded {
		return fmt.Errorf("phase %q, %+v", di.Status.Phase, di.Status.LastError)
	}
	return r.checkObjects(ctx, value)
}

// create creates the item and starts its first job.
func (r *run) create(ctx context.Context, value string, slow bool) error {
	di := r.ls.Item(r.ns, itemName, r.getType(), r.subject.config(r.ns, value, slow))
	if r.subject.objects != nil {
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	}
	if err := r.ls.Create(ctx, di); err != nil {
		return err
	}
	return r.startJob(ctx)
}

// update changes the item and requests a job.
func (r *run) update(ctx context.Context, value string, slow bool) error {
	if err := r.ls.Update(ctx, r.key, r.subject.config(r.ns, value, slow)); err != nil {
		return err
	}
	return r.startJob(ctx)
}

// startJob starts the next job, if the revision has jobs.
func (r *run) startJob(ctx context.Context) error {
	r.jobs++
	if !world.RevisionOf(r.subject.revision).Jobs {
		return nil
	}
	return r.ls.TriggerWithJobID(ctx, r.key, fmt.Sprintf("job-%d", r.jobs))
}

// changeObjects deletes an object and waits until the object is restored. Then it changes another object and waits
// again.
func (r *run) changeObjects(ctx context.Context) error {
	if r.subject.objects == nil {
		return nil
	}
	deleted := &corev1.ConfigMap{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: r.ns, Name: "item-side"}, deleted); err != nil {
		return err
	}
	if err := c.Delete(ctx, deleted.DeepCopy()); err != nil {
		return err
	}
	if err := r.waitUntilRestored(ctx, second); err != nil {
		return err
	}
	changed := &corev1.ConfigMap{}
	changed.Namespace, changed.Name = r.ns, "item-main"
	edit := client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"by hand"}}`))
	if err := c.Patch(ctx, changed, edit, client.FieldOwner("kubectl-edit")); err != nil {
		return err
	}
	return r.waitUntilRestored(ctx, second)
}

// waitUntilRestored waits until exactly the objects for the given value exist.
func (r *run) waitUntilRestored(ctx context.Context, value string) error {
	var why error
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		why = r.checkObjects(ctx, value)
		return why == nil, nil
	})
	if err != nil {
		return errors.Join(err, why)
	}
	return nil
}

// startAndInterrupt starts a job that does not end by itself. The job is then interrupted. Under the job-ID revision,
// Landscaper ends the job. Under the annotation revision, an annotation requests that the deployer aborts it.
func (r *run) startAndInterrupt(ctx context.Context) error {
	if err := r.update(ctx, interrupted, true); err != nil {
		return err
	}
	if _, err := r.ls.WaitForPhase(ctx, r.key, phases.Progressing); err != nil {
		return err
	}
	revision := world.RevisionOf(r.subject.revision)
	if err := revision.Interrupt(ctx, r.ls, r.key); err != nil || revision.Jobs {
		return err
	}
	_, err := r.ls.WaitFor(ctx, r.key, func(di *lsv1alpha1.DeployItem) (bool, error) {
		return di.Status.Phase == phases.Failed && di.Annotations[lsv1alpha1.OperationAnnotation] == "", nil
	})
	return err
}

// delete deletes the item. For a while, a finalizer blocks the deletion of an object, and the item has to wait. After
// that, only the export Secret may still exist, because the garbage collector deletes it later.
func (r *run) delete(ctx context.Context) error {
	if r.subject.objects != nil {
		if err := r.setFinalizers(ctx, `["example.com/hold"]`); err != nil {
			return err
		}
	}
	if err := r.ls.MarkForDeletion(ctx, r.key); err != nil {
		return err
	}
	if world.RevisionOf(r.subject.revision).Jobs {
		if err := r.ls.TriggerWithJobID(ctx, r.key, "job-of-deletion"); err != nil {
			return err
		}
	}
	if r.subject.objects != nil {
		if err := r.waitForDeletionTimestamp(ctx); err != nil {
			return err
		}
		if err := r.setFinalizers(ctx, "null"); err != nil {
			return err
		}
	}
	if err := r.ls.WaitForDeletion(ctx, r.key); err != nil {
		return err
	}
	if r.subject.exports {
		return r.waitUntilRestored(ctx, "")
	}
	return r.checkObjects(ctx, "")
}

// setFinalizers sets the finalizers of an object.
func (r *run) setFinalizers(ctx context.Context, finalizers string) error {
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = r.ns, "item-main"
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
	return c.Patch(ctx, cm, patch, client.FieldOwner("holder"))
}

// waitForDeletionTimestamp waits until the deployer has requested the deletion of the object with the finalizer.
func (r *run) waitForDeletionTimestamp(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		cm := &corev1.ConfigMap{}
		err := c.Get(ctx, types.NamespacedName{Namespace: r.ns, Name: "item-main"}, cm)
		return err == nil && cm.DeletionTimestamp != nil, err
	})
}

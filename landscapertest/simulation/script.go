// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	namespace = "default"
	// pollInterval is the interval at which the simulated Landscaper reads an item.
	pollInterval = time.Second
	// defaultMaxJob is the default of Scenario.MaxJob. It is shorter than the default timeout of an item, so that a run
	// shows if nothing but the timeout ends a job.
	defaultMaxJob = 9 * time.Minute
)

// runItem plays Landscaper for one item: it creates the item, gives it jobs, and deletes it.
func (w *World) runItem(ctx context.Context, c client.Client, name string) error {
	ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Poll: pollInterval, ManagedBy: "simulation", DeployerType: true})
	key := objectKey{Namespace: namespace, Name: name}
	for n := 1; n <= w.scenario.Jobs; n++ {
		sleepUntil(ctx, randomDuration(w.seed, fmt.Sprintf("pause %s %d", name, n), time.Millisecond, 10*time.Second))
		if err := w.changeItem(ctx, ls, c, key, n); err != nil {
			return err
		}
		if err := w.runJob(ctx, ls, key, fmt.Sprintf("%s-%d", name, n)); err != nil {
			return err
		}
	}
	if err := w.waitUntilSettled(ctx, ls, key); err != nil {
		return err
	}
	return w.deleteItem(ctx, ls, key)
}

// waitUntilSettled is called after the last job of an item. If the job has succeeded, it waits until the operation is
// handled that was set during the job, and until Scenario.CheckDeployed returns no error. After a failed job, an
// operation may wait for the next job.
func (w *World) waitUntilSettled(ctx context.Context, ls *landscapertest.Landscaper, key objectKey) error {
	for end := time.Now().Add(w.scenario.MaxJob); ; sleepUntil(ctx, pollInterval) {
		item, err := ls.Get(ctx, key)
		if err != nil {
			return err
		}
		err = w.checkSettled(item)
		if err != nil && time.Now().After(end) {
			return fmt.Errorf("%s after the last job of %s: %w", w.scenario.MaxJob, key, err)
		}
		if err == nil || ctx.Err() != nil {
			return nil
		}
	}
}

func (w *World) checkSettled(item *lsv1alpha1.DeployItem) error {
	if item.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
		return nil
	}
	if operation := item.Annotations[lsv1alpha1.OperationAnnotation]; operation != "" {
		return fmt.Errorf("the operation %s was not handled", operation)
	}
	if w.scenario.CheckDeployed == nil {
		return nil
	}
	return w.scenario.CheckDeployed(w, item)
}

// changeItem creates the item, or changes it for its next job.
func (w *World) changeItem(ctx context.Context, ls *landscapertest.Landscaper, c client.Client, key objectKey, n int) error {
	item := w.scenario.NewItem(w, key.Name, n)
	if n > 1 {
		stored, err := ls.Get(ctx, key)
		if err != nil {
			return err
		}
		changed := stored.DeepCopy()
		changed.Spec.Configuration, changed.Spec.Target = item.Spec.Configuration, item.Spec.Target
		return c.Patch(ctx, changed, client.MergeFrom(stored))
	}
	item.Namespace, item.Name, item.Spec.Type = key.Namespace, key.Name, w.scenario.Type
	return errors.Join(ls.EnsureContext(ctx, namespace), ls.Create(ctx, item))
}

// runJob gives an item a job and waits until it has ended. Depending on the seed, the job is interrupted.
func (w *World) runJob(ctx context.Context, ls *landscapertest.Landscaper, key objectKey, id string) error {
	if err := ls.TriggerWithJobID(ctx, key, id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.scenario.MaxJob)
	defer cancel()
	if err := w.disturbJob(ctx, ls, key, id); err != nil {
		return err
	}
	_, err := ls.WaitForJob(ctx, key, id)
	if err != nil {
		return fmt.Errorf("job %s did not end: %w", id, err)
	}
	return nil
}

// disturbJob does what a user can do during a job. The seed decides what and when.
func (w *World) disturbJob(ctx context.Context, ls *landscapertest.Landscaper, key objectKey, id string) error {
	n := w.Random("disturb "+id, 10)
	if n > 2 {
		return nil
	}
	sleepUntil(ctx, randomDuration(w.seed, "disturb after "+id, time.Millisecond, 6*time.Second))
	switch n {
	case 0:
		return ls.Interrupt(ctx, key)
	case 1:
		return ls.SetOperation(ctx, key, contract.AbortOperation)
	}
	return ls.SetOperation(ctx, key, lsv1alpha1.ForceReconcileOperation)
}

// deleteItem deletes an item. A deletion that fails is requested again.
func (w *World) deleteItem(ctx context.Context, ls *landscapertest.Landscaper, key objectKey) error {
	if err := ls.MarkForDeletion(ctx, key); err != nil {
		return err
	}
	const maxDeletions = 5
	for n := 1; n <= maxDeletions; n++ {
		id := fmt.Sprintf("%s-delete-%d", key.Name, n)
		err := w.runJob(ctx, ls, key, id)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		w.record("the deletion job %s failed", id)
		sleepUntil(ctx, time.Minute)
	}
	return fmt.Errorf("item %s was not deleted by %d jobs", key, maxDeletions)
}

// runItems plays Landscaper for all items of the scenario until they are deleted.
func (w *World) runItems(ctx context.Context) error {
	c, err := w.NewClient("landscaper", "")
	if err != nil {
		return err
	}
	for _, name := range w.scenario.Targets {
		if err := w.createTarget(ctx, c, namespace, name); err != nil {
			return err
		}
	}
	results := make(chan error, w.scenario.Items)
	for i := range w.scenario.Items {
		go func() { results <- w.runItem(ctx, c, fmt.Sprintf("item-%d", i+1)) }()
	}
	errs := []error{}
	for range w.scenario.Items {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}

// checkQuiet checks, after all items are deleted, that the deployers send no more writes, apart from the renewal of
// their lease and of events.
func (w *World) checkQuiet(ctx context.Context) error {
	const settling, quiet = time.Minute, 2 * time.Minute
	sleepUntil(ctx, settling)
	before := w.countWrites()
	sleepUntil(ctx, quiet)
	if n := w.countWrites() - before; n > 0 {
		return fmt.Errorf("%d changes in %s, although all items are deleted", n, quiet)
	}
	return nil
}

// newItem returns the item for scenarios without NewItem.
func newItem(_ *World, _ string, job int) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Spec.Configuration = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"job":%d}`, job)}
	return di
}

// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// WaitFor reads an item repeatedly until ok returns true, and returns the item. If ok returns an error, WaitFor returns
// that error. If ctx has no deadline, WaitFor gives up after a minute. When WaitFor gives up, its error contains the
// item's status.
func (l *Landscaper) WaitFor(ctx context.Context, item types.NamespacedName, ok func(*lsv1alpha1.DeployItem) (bool, error)) (*lsv1alpha1.DeployItem, error) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
	}
	ticker := time.NewTicker(l.options.Poll)
	defer ticker.Stop()
	var last *lsv1alpha1.DeployItem
	for {
		di, err := l.Get(ctx, item)
		if err == nil {
			last = di
			var done bool
			if done, err = ok(di); done && err == nil {
				return di, nil
			}
		}
		if err != nil && ctx.Err() == nil {
			return last, err
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("%w while waiting for deploy item %s: %s", ctx.Err(), item, statusText(last))
		case <-ticker.C:
		}
	}
}

// statusText returns the status of an item as text for an error.
func statusText(di *lsv1alpha1.DeployItem) string {
	if di == nil {
		return "the item was never read"
	}
	raw, err := json.Marshal(di.Status)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("generation %d, annotations %v, status %s", di.Generation, di.Annotations, raw)
}

// WaitUntilFinished waits until Landscaper would consider the run of the item finished, whether it succeeded or failed.
// It returns an error if the item is marked as finished in a phase that is not final, because that violates the
// contract.
func (l *Landscaper) WaitUntilFinished(ctx context.Context, item types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	return l.WaitFor(ctx, item, l.protocol.isFinished)
}

// WaitForJob is like WaitUntilFinished, but waits for the end of the given job.
func (l *Landscaper) WaitForJob(ctx context.Context, item types.NamespacedName, jobID string) (*lsv1alpha1.DeployItem, error) {
	return l.WaitFor(ctx, item, func(di *lsv1alpha1.DeployItem) (bool, error) {
		done, err := l.protocol.isFinished(di)
		return done && di.Status.JobIDFinished == jobID, err
	})
}

// WaitForPhase waits until the item is in the given phase.
func (l *Landscaper) WaitForPhase(ctx context.Context, item types.NamespacedName, phase lsv1alpha1.DeployItemPhase) (*lsv1alpha1.DeployItem, error) {
	return l.WaitFor(ctx, item, func(di *lsv1alpha1.DeployItem) (bool, error) { return di.Status.Phase == phase, nil })
}

// errDeletionFailed is the error of WaitForDeletion for a failed deletion.
var errDeletionFailed = errors.New("the deletion failed")

// WaitForDeletion waits until an item is deleted. It returns an error if the deletion failed.
func (l *Landscaper) WaitForDeletion(ctx context.Context, item types.NamespacedName) error {
	di, err := l.WaitFor(ctx, item, func(di *lsv1alpha1.DeployItem) (bool, error) {
		if di.DeletionTimestamp == nil {
			return false, nil
		}
		over, err := l.protocol.isFinished(di)
		if over && deletionFailed(l.protocol, di) {
			return false, errDeletionFailed
		}
		return false, err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if errors.Is(err, errDeletionFailed) {
		return fmt.Errorf("deploy item %s: %w: %s", item, err, statusText(di))
	}
	return err
}

// deletionFailed reports whether the run that deletes the item failed. The failure of an earlier run does not count.
func deletionFailed(p protocol, di *lsv1alpha1.DeployItem) bool {
	s := di.Status
	failed := contract.IsFinal(s.Phase) && s.Phase != lsv1alpha1.DeployItemPhases.Succeeded
	since := p.runSince(di)
	return failed && since != nil && !since.Before(di.DeletionTimestamp)
}

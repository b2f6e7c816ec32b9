// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// watchEnd marks the record of an operation as failed when the process stops, or when the job of the item has ended
// without a call of the deployer.
func (r *run) watchEnd(op *operation) {
	clk, deadline := r.deployer.manager.GetRuntime().Clock, r.deadline()
	r.Managed.Cluster.Go(func(ctx context.Context) {
		reason := "the deployer was stopped"
		var expired <-chan time.Time
		if !deadline.IsZero() {
			timer := clk.NewTimer(deadline.Sub(clk.Now()))
			defer timer.Stop()
			expired = timer.C()
		}
		select {
		case <-op.done:
			return
		case <-expired:
			reason = "the timeout of the item has passed"
		case <-ctx.Done():
		}
		op.interrupt(ctx, clk.Now(), reason)
	})
}

// interruptTimeout limits the time for marking the record of an interrupted operation as failed.
const interruptTimeout = 4 * time.Second

// interrupt ends an operation from outside, and marks its record as failed.
func (op *operation) interrupt(ctx context.Context, now time.Time, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), interruptTimeout)
	defer cancel()
	_ = op.writeFailure(ctx, now, reason) // if this fails, the next operation marks the record as failed
	op.end(now, resultInterrupted)
}

// deadline returns the time at which the job of the item ends, or the zero time if it does not end.
func (r *run) deadline() time.Time {
	timeout, limited, err := contract.Timeout(r.Managed.Item)
	if !limited || err != nil {
		return time.Time{}
	}
	began := r.Managed.Item.Status.LastReconcileTime
	if times := r.Managed.Item.Status.TransitionTimes; times != nil && times.InitTime != nil {
		began = times.InitTime
	}
	if began == nil {
		return time.Time{}
	}
	return began.Add(timeout)
}

// Abort marks the record of the operation that is under way as failed.
func (d *deployer) Abort(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	d.interruptOperation(ctx, di, "the operation was aborted")
	return nil
}

// interruptOperation ends the operation of an item from outside.
func (d *deployer) interruptOperation(ctx context.Context, di *lsv1alpha1.DeployItem, reason string) {
	stored, ok := d.manager.GetValue(di.UID, memoryKey{}).(*memory)
	if !ok || stored.operation == nil {
		return
	}
	stored.operation.interrupt(ctx, d.manager.GetRuntime().Clock.Now(), reason)
}

// endAbandoned is a hook that ends the operation of an item whose job has ended without a call of the deployer, for
// example because Landscaper has interrupted the job.
func (d *deployer) endAbandoned() extension.ReconcileExtensionHookSetup {
	hook := func(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		if di.Status.Phase.IsFailed() && di.Status.JobID == di.Status.JobIDFinished {
			d.interruptOperation(ctx, di, "the job of the item has ended")
		}
		return nil, nil
	}
	return extension.ReconcileExtensionHookSetup{Hook: extension.WithName("end-abandoned-operation", hook), HookTypes: []extension.HookType{extension.AfterResponsibilityCheckHook}}
}

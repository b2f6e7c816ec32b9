// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// calls contains the calls of deployers that are in progress. World.mu guards it.
type calls map[objectKey]*runningCall

type runningCall struct {
	process *Process
	action  contract.Action
}

// forget removes the calls of a process that has ended.
func (c calls) forget(p *Process) {
	for key, call := range c {
		if call.process == p {
			delete(c, key)
		}
	}
}

// recorder is a deployer that records the calls of another one.
type recorder struct {
	deployerlib.Deployer
	process *Process
}

// Unwrap implements deployerlib.Unwrapper.
func (r *recorder) Unwrap() deployerlib.Deployer { return r.Deployer }

type action func(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error

// call calls an action of the deployer. It reports a violation if another call for the same item is in progress, or if a
// deployer has ended the job already. Abort may also be called after the end, to clean up after a call.
func (r *recorder) call(ctx context.Context, name contract.Action, f action, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	w, key := r.process.world, objectKey{Namespace: di.Namespace, Name: di.Name}
	own := &runningCall{process: r.process, action: name}
	w.mu.Lock()
	other, dead := w.calls[key], r.process.dead
	endedBy := w.getHistory(di.UID).endedBy[di.Status.JobID]
	if !dead {
		w.calls[key] = own
	}
	w.mu.Unlock()
	w.record("%s calls %s for %s", r.process.Name, name, key)
	if other != nil && !dead {
		w.fail(fmt.Errorf("%s calls %s for %s while a call of %s by %s is in progress", r.process.Name, name, key, other.action, other.process.Name))
	}
	if endedBy != nil && !dead && name != contract.ActionAbort && di.Status.JobID != di.Status.JobIDFinished {
		w.fail(fmt.Errorf("%s calls %s for the job %q of %s, which %s has ended", r.process.Name, name, di.Status.JobID, key, endedBy.Name))
	}
	var err error
	defer func() { // also after a panic
		w.record("%s returns from %s for %s: %v", r.process.Name, name, key, err)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls[key] == own {
			delete(w.calls, key)
		}
	}()
	uid := di.UID
	if err = f(ctx, lsCtx, di, target); err == nil && name == contract.ActionDelete {
		w.mu.Lock()
		w.getHistory(uid).deletedBy[r.process] = true
		w.mu.Unlock()
	}
	return err
}

// Reconcile implements deployerlib.Deployer.
func (r *recorder) Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return r.call(ctx, contract.ActionReconcile, r.Deployer.Reconcile, lsCtx, di, target)
}

// Delete implements deployerlib.Deployer.
func (r *recorder) Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return r.call(ctx, contract.ActionDelete, r.Deployer.Delete, lsCtx, di, target)
}

// ForceReconcile implements deployerlib.Deployer.
func (r *recorder) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return r.call(ctx, contract.ActionForceReconcile, r.Deployer.ForceReconcile, lsCtx, di, target)
}

// Abort implements deployerlib.Deployer.
func (r *recorder) Abort(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return r.call(ctx, contract.ActionAbort, r.Deployer.Abort, lsCtx, di, target)
}

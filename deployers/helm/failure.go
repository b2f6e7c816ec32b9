// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// failureOf returns the error with which an operation fails, or nil if a later call can continue the operation.
func (r *run) failureOf(op *operation, err error) error {
	_, hookFailed := errors.AsType[*hookError](err)
	_, invalid := errors.AsType[*release.Error](err)
	switch {
	case hookFailed, invalid, contract.HasUnrecoverableCode(contract.ErrorCodes(err)), errors.Is(err, release.ErrConflict):
		return err
	}
	timeout := op.settings.Timeout
	if timeout == 0 || r.now().Before(op.began.Add(timeout)) {
		return nil
	}
	text := err.Error()
	if reason, _, waits := deployerlib.AsWait(err); waits {
		text = reason
	}
	return lserrors.NewError("Helm", lsv1alpha1.ProgressingTimeoutReason, fmt.Sprintf("%s not done within %s: %s", op.kind, timeout, text), lsv1alpha1.ErrorTimeout)
}

// limitWait shortens a wait so that it ends with the time of the operation. It returns other errors unchanged.
func (r *run) limitWait(op *operation, err error) error {
	reason, after, waits := deployerlib.AsWait(err)
	if !waits || op.settings.Timeout == 0 {
		return err
	}
	return deployerlib.WaitFor(reason, min(after, max(op.began.Add(op.settings.Timeout).Sub(r.now()), time.Second)))
}

// failOperation records that an operation has failed. It then reverts the operation if the configuration requires it.
// It returns the error of the operation with an error code, so that the job ends.
func (r *run) failOperation(ctx context.Context, op *operation) error {
	text := op.redactor.Redact(plainText(op.failure))
	if op.kind == kindUninstall {
		text += r.describeRemaining(ctx)
	}
	if err := op.writeFailure(ctx, r.now(), text); err != nil {
		return err
	}
	r.endOperation(op)
	if op.stored && (op.kind == kindInstall || op.kind == kindUpgrade) {
		_ = trimHistory(ctx, op.storage, op.former, lastDeployed(op.former)) // the next operation tries again
	}
	if err := r.recordFailure(op, text); err != nil {
		return err
	}
	failure := r.finalError(op, text)
	if op.settings.Atomic && op.stored && (op.kind == kindInstall || op.kind == kindUpgrade) {
		revert, err := r.revert(ctx, op, failure)
		if err != nil {
			return err
		}
		r.memory.operation = revert
		return r.continueOperation(ctx, revert)
	}
	if op.cause != nil {
		return errors.Join(op.cause, failure)
	}
	return failure
}

// writeFailure marks the record as failed, if there is one.
func (op *operation) writeFailure(ctx context.Context, now time.Time, text string) error {
	return op.markFailed(ctx, now, contract.OneLine(fmt.Sprintf("%s failed: %s", op.kind, text), maxText))
}

// recordFailure sets the failure in the provider status, in memory.
func (r *run) recordFailure(op *operation, text string) error {
	last := r.lastRelease()
	if op.replaced != nil {
		last.FirstFailure = contract.OneLine(text, maxText)
		return r.setLastRelease(last)
	}
	last.FirstFailure, last.inputs, last.Tests = contract.OneLine(text, maxText), inputs{}, r.testResults(op)
	if op.record != nil && op.stored {
		last.Revision, last.Status, last.SecretUID = op.record.Revision(), op.record.Status(), op.record.UID()
		last.Chart, last.ChartVersion = op.record.ChartName(), op.record.ChartVersion()
	}
	return r.setLastRelease(last)
}

// finalError returns the error of a failed operation, with a code that ends the job.
func (r *run) finalError(op *operation, text string) error {
	codes := contract.ErrorCodes(op.failure)
	if !contract.HasUnrecoverableCode(codes) {
		codes = append(codes, lsv1alpha1.ErrorConfigurationProblem)
	}
	chart := ""
	if op.record != nil {
		chart = fmt.Sprintf(" of chart %s %s", op.record.ChartName(), op.record.ChartVersion())
	}
	return lserrors.NewError("Helm", "OperationFailed", contract.OneLine(fmt.Sprintf("%s%s failed: %s", op.kind, chart, text), maxText), codes...)
}

// plainText returns the text of an error without the decoration of Landscaper's errors.
func plainText(err error) string {
	if coded, ok := errors.AsType[*lserrors.Error](err); ok {
		return coded.LandscaperError().Message
	}
	return err.Error()
}

// revert returns the operation that reverts a failed installation or upgrade.
func (r *run) revert(ctx context.Context, op *operation, cause error) (*operation, error) {
	revert := r.newOperation(kindUninstall, op.inputs, op.storage)
	revert.settings, revert.redactor, revert.cause = OperationConfig{Timeout: op.settings.Timeout, Wait: true}, op.redactor, cause
	revert.record, revert.stored = op.record, true
	var err error
	if revert.former, err = op.storage.List(ctx); err != nil {
		return nil, err
	}
	deployed := lastDeployed(revert.former)
	if deployed == nil {
		revert.desired, err = r.formerObjects(ctx)
		return revert, err
	}
	record, err := op.storage.Get(ctx, deployed.Number)
	if err != nil {
		return nil, err
	}
	revert.kind, revert.stored, revert.record = kindRollback, false, record.Rollback()
	latest := revert.former[len(revert.former)-1].Number
	revert.record.Begin(latest+1, release.StatusPendingRollback, r.operationIDs().next(), r.now(), fmt.Sprintf("Rollback to %d", deployed.Number))
	revert.desired, err = r.newChartRenderer().desiredOf(record)
	return revert, err
}

// lastDeployed returns the last deployed revision, or nil if there is none.
func lastDeployed(revisions []release.Revision) *release.Revision {
	for i := len(revisions) - 1; i >= 0; i-- {
		if revisions[i].Status == release.StatusDeployed {
			return &revisions[i]
		}
	}
	return nil
}

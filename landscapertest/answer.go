// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Input contains the arguments of a call of a Fake. Item is deployerlib's working copy of the deploy item. Like a
// deployer, an Answer may change the status of this copy.
type Input struct {
	Action  contract.Action
	Context *lsv1alpha1.Context
	Item    *lsv1alpha1.DeployItem
	Target  *lsv1alpha1.ResolvedTarget
}

// Answer is the function that a Fake runs in a call. Its result is the result of the call.
type Answer func(ctx context.Context, in Input) error

// ReturnNil returns an answer that returns nil.
func ReturnNil() Answer { return ReturnError(nil) }

// ReturnError returns an answer that returns err.
func ReturnError(err error) Answer {
	return func(context.Context, Input) error { return err }
}

// SetPhase returns an answer that sets the item's phase and returns nil.
func SetPhase(phase lsv1alpha1.DeployItemPhase) Answer {
	return UpdateStatus(func(status *lsv1alpha1.DeployItemStatus) { status.Phase = phase })
}

// UpdateStatus returns an answer that changes the item's status and returns nil.
func UpdateStatus(change func(*lsv1alpha1.DeployItemStatus)) Answer {
	return func(_ context.Context, in Input) error {
		change(&in.Item.Status)
		return nil
	}
}

// ReturnWaitFor returns an answer that returns the result of deployerlib.WaitFor.
func ReturnWaitFor(reason string, after time.Duration) Answer {
	return ReturnError(deployerlib.WaitFor(reason, after))
}

// Panic returns an answer that panics with v.
func Panic(v any) Answer {
	return func(context.Context, Input) error { panic(v) }
}

// BlockUntil returns an answer that waits until the channel `release` is closed, and then returns nil. If the call is
// cancelled first, the answer returns the cause of the cancellation.
func BlockUntil(release <-chan struct{}) Answer {
	return func(ctx context.Context, _ Input) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// BlockUntilCancelled returns an answer that waits until the call is cancelled and then returns the cause of the
// cancellation.
func BlockUntilCancelled() Answer { return BlockUntil(nil) }

// BlockIgnoringContext returns an answer that waits until the channel `release` is closed and then returns nil. The
// answer continues to wait even if the call is cancelled.
func BlockIgnoringContext(release <-chan struct{}) Answer {
	return func(context.Context, Input) error {
		<-release
		return nil
	}
}

// RunInOrder returns an answer that calls the given answers in order. It stops at the first error and returns this
// error.
func RunInOrder(answers ...Answer) Answer {
	return func(ctx context.Context, in Input) error {
		for _, answer := range answers {
			if err := answer(ctx, in); err != nil {
				return err
			}
		}
		return nil
	}
}

// RunAll returns an answer that calls all given answers in order, even if some of them fail, and joins their errors.
func RunAll(answers ...Answer) Answer {
	return func(ctx context.Context, in Input) error {
		errs := make([]error, 0, len(answers))
		for _, answer := range answers {
			errs = append(errs, answer(ctx, in))
		}
		return errors.Join(errs...)
	}
}

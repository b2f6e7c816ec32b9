// SPDX-License-Identifier: Apache-2.0

package continuousreconcile

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/extension"
)

const (
	// ActiveAnnotation turns continuous reconciliation of an item off when it is "false"; anything else has no effect.
	ActiveAnnotation = "continuousreconcile.extensions.landscaper.gardener.cloud/active"

	// Name is the name that the hook shows in errors, traces and metrics.
	Name = "continuous-reconcile"

	priority         = -50 // of the items in the queue: below jobs and what a user asked for
	defaultMaxJitter = 5 * time.Minute
	jitterShare      = 10 // a tenth of the period
)

// ContinuousReconcileExtensionSetup returns the hook of [ContinuousReconcileExtension] with the type it is meant for.
func ContinuousReconcileExtensionSetup(next func(ctx context.Context, lastReconcileTime time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error)) extension.ReconcileExtensionHookSetup {
	return Extension{Next: next}.Setup()
}

// ContinuousReconcileExtension returns a hook that forces a run when the time that next gives has come and otherwise
// asks to be called then. It is the hook of an [Extension] with the real clock and the default jitter. A nil next
// gives a nil hook, which the registry's Validate reports.
func ContinuousReconcileExtension(next func(ctx context.Context, lastReconcileTime time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error)) extension.ReconcileExtensionHook {
	return Extension{Next: next}.Hook()
}

// Extension is the continuous reconcile hook with all that can be set.
type Extension struct {
	// Next gives the time of the next run. Required.
	Next Next
	// Clock tells the time. Default: the real clock.
	Clock clock.PassiveClock
	// MaxJitter is the most that a run is put off, so that the runs of items with the same schedule do not come together.
	// The jitter is also at most a tenth of the period. Default: 5 minutes. If it is negative, there is no jitter.
	MaxJitter time.Duration
}

// Setup returns the hook with the type it is meant for.
func (e Extension) Setup() extension.ReconcileExtensionHookSetup {
	return extension.ReconcileExtensionHookSetup{Hook: e.Hook(), HookTypes: []extension.HookType{extension.ShouldReconcileHook}}
}

// Hook returns the hook, nil without Next. It is an error to register it for anything but ShouldReconcile.
//
// Its result is nil if the item was never reconciled, is being deleted, has no schedule or has [ActiveAnnotation]. An
// error of Next is the hook's error.
func (e Extension) Hook() extension.ReconcileExtensionHook {
	if e.Next == nil {
		return nil
	}
	if e.Clock == nil {
		e.Clock = clock.RealClock{}
	}
	if e.MaxJitter == 0 {
		e.MaxJitter = defaultMaxJitter
	}
	return extension.Named(Name, e.shouldReconcile)
}

func (e Extension) shouldReconcile(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, hookType extension.HookType) (*extension.HookResult, error) {
	if hookType != extension.ShouldReconcileHook {
		return nil, errors.New("continuous reconcile is a hook for ShouldReconcile only")
	}
	if !applies(di) {
		return nil, nil
	}
	due, err := e.due(ctx, di.Status.LastReconcileTime.Time, di)
	if err != nil || due == nil {
		return nil, err
	}
	now := e.Clock.Now()
	if now.Before(*due) {
		return result(true, due.Sub(now)), nil
	}
	// The run that starts now sets lastReconcileTime, in whole seconds, and the next one is counted from there.
	following, err := e.due(ctx, now.Truncate(time.Second), di)
	if err != nil {
		return nil, err
	}
	if following == nil {
		return result(false, 0), nil
	}
	return result(false, max(following.Sub(now), 0)), nil
}

// applies reports whether the schedule matters for the item now.
func applies(di *lsv1alpha1.DeployItem) bool {
	return di != nil && di.DeletionTimestamp == nil && !di.Status.LastReconcileTime.IsZero() && di.Annotations[ActiveAnnotation] != "false"
}

// due is the time after last at which the item runs, nil for never.
func (e Extension) due(ctx context.Context, last time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error) {
	next, err := e.ask(ctx, last, di)
	if err != nil || next == nil {
		return nil, err
	}
	after, err := e.ask(ctx, *next, di)
	if err != nil {
		return nil, err
	}
	if after == nil {
		return next, nil
	}
	due := next.Add(jitter(di, min(after.Sub(*next)/jitterShare, e.MaxJitter)))
	return &due, nil
}

func (e Extension) ask(ctx context.Context, last time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error) {
	next, err := e.Next(ctx, last, di)
	if err != nil {
		return nil, fmt.Errorf("get next reconcile time: %w", err)
	}
	return next, nil
}

// jitter spreads items over the time below limit, in whole seconds. It is the same at every call and in every process.
func jitter(di *lsv1alpha1.DeployItem, limit time.Duration) time.Duration {
	seconds := int64(limit / time.Second)
	if seconds <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(di.UID)) // never fails
	if di.UID == "" {
		_, _ = h.Write([]byte(di.Namespace + "/" + di.Name))
	}
	return time.Duration(h.Sum64()%uint64(seconds)) * time.Second
}

func result(abort bool, after time.Duration) *extension.HookResult {
	lowest := priority
	return &extension.HookResult{
		AbortReconcile:  abort,
		ReconcileResult: reconcile.Result{RequeueAfter: after, Priority: &lowest},
	}
}

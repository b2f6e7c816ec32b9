// SPDX-License-Identifier: Apache-2.0

package continuousreconcile

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/extension"
)

const (
	// ActiveAnnotation turns continuous reconciliation of an item off if its value is "false". Any other value has no
	// effect.
	ActiveAnnotation = "continuousreconcile.extensions.landscaper.gardener.cloud/active"

	// Name is the name of the hook in errors, traces and metrics.
	Name = "continuous-reconcile"

	priority         = -50 // the priority of the items in the queue, which is lower than that of jobs and user requests
	defaultMaxJitter = 5 * time.Minute
	jitterShare      = 10 // the jitter is at most a tenth of the period
)

// ContinuousReconcileExtensionSetup returns the hook of [ContinuousReconcileExtension] together with its hook type.
func ContinuousReconcileExtensionSetup(next func(ctx context.Context, lastReconcileTime time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error)) extension.ReconcileExtensionHookSetup {
	return Extension{Next: next}.Setup()
}

// ContinuousReconcileExtension returns a hook that forces a run when the scheduled time has come, and otherwise
// requests a reconcile at that time. The function `next` returns the scheduled time. The returned hook is the hook of
// an [Extension] with the real clock and the default jitter. If next is nil, the hook is nil, and
// [extension.ReconcileExtensionHooks.Validate] reports the nil hook.
func ContinuousReconcileExtension(next func(ctx context.Context, lastReconcileTime time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error)) extension.ReconcileExtensionHook {
	return Extension{Next: next}.Hook()
}

// Extension is the continuous reconcile hook with all its settings.
type Extension struct {
	// Next returns the time of the next run. It is required.
	Next NextFunc
	// Clock returns the current time. The default is the real clock.
	Clock clock.PassiveClock
	// MaxJitter limits the jitter, which delays a run so that items with the same schedule do not run at the same time.
	// The jitter is also at most a tenth of the period. The default is 5 minutes. A negative value means no jitter.
	MaxJitter time.Duration
}

// Setup returns the hook together with its hook type.
func (e Extension) Setup() extension.ReconcileExtensionHookSetup {
	return extension.ReconcileExtensionHookSetup{Hook: e.Hook(), HookTypes: []extension.HookType{extension.ShouldReconcileHook}}
}

// Hook returns the hook, or nil if Next is nil. The hook is only for ShouldReconcile; for any other hook type it
// returns an error.
//
// The hook returns nil if the item was never reconciled, is being deleted, has no schedule or is turned off by
// [ActiveAnnotation]. It returns the error of Next.
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
	return extension.WithName(Name, e.shouldReconcile)
}

func (e Extension) shouldReconcile(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, hookType extension.HookType) (*extension.HookResult, error) {
	if hookType != extension.ShouldReconcileHook {
		return nil, errors.New("the continuous reconcile hook must be registered for ShouldReconcile only")
	}
	if !isScheduleActive(di) {
		return nil, nil
	}
	due, err := e.getNextRun(ctx, di.Status.LastReconcileTime.Time, di)
	if err != nil || due == nil {
		return nil, err
	}
	now := e.Clock.Now()
	if now.Before(*due) {
		return newResult(true, due.Sub(now)), nil
	}
	// The run that starts now sets lastReconcileTime, in whole seconds. The time of the next run is computed from
	// lastReconcileTime.
	following, err := e.getNextRun(ctx, now.Truncate(time.Second), di)
	if err != nil {
		return nil, err
	}
	if following == nil {
		return newResult(false, 0), nil
	}
	return newResult(false, max(following.Sub(now), 0)), nil
}

// isScheduleActive reports whether the schedule of the item is in effect now.
func isScheduleActive(di *lsv1alpha1.DeployItem) bool {
	return di != nil && di.DeletionTimestamp == nil && !di.Status.LastReconcileTime.IsZero() && di.Annotations[ActiveAnnotation] != "false"
}

// getNextRun returns the time of the first run after the given time, including the jitter. It returns nil if no run is
// scheduled.
func (e Extension) getNextRun(ctx context.Context, last time.Time, di *lsv1alpha1.DeployItem) (*time.Time, error) {
	next, err := e.Next(ctx, last, di)
	if err != nil || next == nil {
		return nil, err
	}
	after, err := e.Next(ctx, *next, di)
	if err != nil {
		return nil, err
	}
	if after == nil {
		return next, nil
	}
	due := next.Add(jitter(di, min(after.Sub(*next)/jitterShare, e.MaxJitter)))
	return &due, nil
}

// jitter returns a delay below the given limit, in whole seconds. It depends only on the item's UID, so it is the same
// in every call and process.
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

func newResult(abort bool, after time.Duration) *extension.HookResult {
	lowest := priority
	return &extension.HookResult{
		AbortReconcile:  abort,
		ReconcileResult: reconcile.Result{RequeueAfter: after, Priority: &lowest},
	}
}

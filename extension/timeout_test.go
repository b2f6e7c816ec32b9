// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/extension"
)

// runInBubble runs f in a synctest bubble, and waits until late hooks have ended.
func runInBubble(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		f(t)
		<-time.After(2 * time.Hour)
	})
}

// runTimed runs one hook with a time limit of one second.
func runTimed(ctx context.Context, di *lsv1alpha1.DeployItem, hook extension.ReconcileExtensionHook) (*result, error) {
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(extension.WithTimeout(time.Second, hook), extension.EndHook)
	return hooks.ExecuteHooks(ctx, logr.Discard(), di, nil, extension.EndHook)
}

func TestWithTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		hook   extension.ReconcileExtensionHook
		want   string
		is     error
	}{
		"a hook that returns in time": {
			reason: "transparent",
			hook:   newHook(new([]string), "", newHookResult(true, false, 0), nil),
		},
		"a hook that returns an error in time": {
			reason: "transparent",
			hook:   newHook(new([]string), "", newHookResult(true, false, 0), errBoom), want: "hook End[0]: boom", is: errBoom,
		},
		"a hook that panics": {
			reason: "contained in the goroutine",
			hook:   newPanicHook(errBoom), want: "hook End[0]: panic: boom", is: errBoom,
		},
		"a hook whose goroutine exits": {
			reason: "the call returns",
			hook: func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
				runtime.Goexit()
				return nil, nil
			},
			want: "hook End[0]: exited its goroutine without returning",
		},
		"a hook that watches its context": {
			reason: "the error names the timeout",
			hook: func(ctx context.Context, _ logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*result, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			want: "hook End[0]: did not return within 1s", is: context.DeadlineExceeded,
		},
		"a hook that ignores its context": {
			reason: "the reconcile continues",
			hook: func(ctx context.Context, _ logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*result, error) {
				<-time.After(time.Hour)
				return nil, ctx.Err()
			},
			want: "hook End[0]: did not return within 1s", is: context.DeadlineExceeded,
		},
		"a named hook": {
			reason: "the error contains the name",
			hook:   extension.WithName("slow", newHook(new([]string), "", nil, errBoom)), want: "hook End[0] (slow): boom", is: errBoom,
		},
	} {
		t.Run(name, func(t *testing.T) {
			runInBubble(t, func(t *testing.T) {
				got, err := runTimed(t.Context(), nil, tc.hook)
				if tc.want == "" {
					if err != nil || got == nil || !got.AbortReconcile {
						t.Errorf("%s: got %v and %v", tc.reason, got, err)
					}
					return
				}
				if got != nil || err == nil || err.Error() != tc.want {
					t.Errorf("%s: got %v and %v, want %s", tc.reason, got, err, tc.want)
				}
				if tc.is != nil && !errors.Is(err, tc.is) {
					t.Errorf("%s: %v does not wrap %v", tc.reason, err, tc.is)
				}
			})
		})
	}
}

func TestWithTimeoutKeepsTheErrorText(t *testing.T) {
	// The return of the hook and the end of the context are simultaneous, so either may be detected first. Both texts
	// are correct, and both begin with the cause.
	runInBubble(t, func(t *testing.T) {
		_, err := runTimed(t.Context(), nil, func(ctx context.Context, _ logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*result, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("read quota: %w", ctx.Err())
		})
		const short, long = "hook End[0]: did not return within 1s", "hook End[0]: did not return within 1s: read quota: context deadline exceeded"
		if err == nil || (err.Error() != short && err.Error() != long) {
			t.Errorf("error = %v, want %q or %q", err, short, long)
		}
	})
}

func TestWithTimeoutWhenTheReconcileIsCanceled(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer time.AfterFunc(time.Millisecond, func() { cancel(errBoom) }).Stop()
		_, err := runTimed(ctx, nil, func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
			<-time.After(time.Hour)
			return nil, nil
		})
		if !errors.Is(err, errBoom) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

func TestWithTimeoutCopiesTheItem(t *testing.T) {
	works := func(d time.Duration) extension.ReconcileExtensionHook {
		return extension.OnItem(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
			di.Status.Phase = "before"
			<-time.After(d)
			di.Status.Phase = "after"
			return nil
		})
	}
	t.Run("changes of a hook that returns in time are kept", func(t *testing.T) {
		runInBubble(t, func(t *testing.T) {
			di := &lsv1alpha1.DeployItem{}
			if _, err := runTimed(t.Context(), di, works(time.Millisecond)); err != nil || di.Status.Phase != "after" {
				t.Errorf("got %v and %q", err, di.Status.Phase)
			}
		})
	})
	t.Run("a hook that returns late does not change the item", func(t *testing.T) {
		runInBubble(t, func(t *testing.T) {
			di := &lsv1alpha1.DeployItem{}
			_, err := runTimed(t.Context(), di, works(time.Hour))
			<-time.After(2 * time.Hour)
			if err == nil || di.Status.Phase != "" {
				t.Errorf("got %v and %q", err, di.Status.Phase)
			}
		})
	})
	t.Run("a hook receives a copy of the target", func(t *testing.T) {
		runInBubble(t, func(t *testing.T) {
			target := &lsv1alpha1.Target{Spec: lsv1alpha1.TargetSpec{Type: "before"}}
			hook := extension.WithTimeout(time.Second, extension.OnItem(func(_ context.Context, _ logr.Logger, _ *lsv1alpha1.DeployItem, own *lsv1alpha1.Target) error {
				own.Spec.Type = "after"
				return nil
			}))
			if _, err := hook(t.Context(), logr.Discard(), &lsv1alpha1.DeployItem{}, target, extension.EndHook); err != nil || target.Spec.Type != "before" {
				t.Errorf("got %v and %q", err, target.Spec.Type)
			}
		})
	})
	t.Run("a hook without a timeout runs in the same goroutine", func(t *testing.T) {
		di := &lsv1alpha1.DeployItem{}
		hook := extension.WithTimeout(0, extension.OnItem(func(_ context.Context, _ logr.Logger, own *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
			if own != di {
				t.Error("got a copy")
			}
			return nil
		}))
		if _, err := hook(t.Context(), logr.Discard(), di, nil, extension.EndHook); err != nil {
			t.Error(err)
		}
	})
}

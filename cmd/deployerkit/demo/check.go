// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

// timeout is how long a check may take to succeed, unless check.within is set.
const timeout = time.Minute

// look is the poll interval of a check.
const look = 50 * time.Millisecond

// check is an expected outcome. The demo waits until it becomes true.
type check struct {
	item  string // name of the item; empty if the check does not concern a single item
	text  string
	holds condition
	// within is how long the check may take to succeed. Zero means `timeout`.
	within time.Duration
}

// condition returns nil if a check succeeds. Otherwise it returns an error that explains why the check does not succeed
// yet. The argument di is nil if the item does not exist.
type condition func(ctx context.Context, st *env, di *lsv1alpha1.DeployItem) error

// String returns the check as a sentence.
func (p check) String() string {
	if p.item == "" {
		return p.text
	}
	return p.item + " " + p.text
}

// await waits until the check succeeds, and shows the result.
func (p check) await(ctx context.Context, st *env, sc *terminal) error {
	began := time.Now()
	limit := time.NewTimer(cmp.Or(p.within, timeout))
	defer limit.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		err := p.verify(ctx, st)
		if err == nil {
			sc.printf("  ✓ %s (%s)", p, since(began))
			return nil
		}
		select {
		case <-ticker.C:
			continue
		case <-ctx.Done():
			return context.Cause(ctx) // the demo was interrupted, so the check has not failed
		case <-limit.C:
		}
		sc.printf("  ✗ %s: %v", p, err)
		return err
	}
}

// verify evaluates the check once.
func (p check) verify(ctx context.Context, st *env) error {
	if p.item == "" {
		return p.holds(ctx, st, nil)
	}
	di, err := st.get(ctx, p.item)
	if err != nil {
		return err
	}
	return p.holds(ctx, st, di)
}

// existing returns a condition that calls f if the item exists, and fails otherwise.
func existing(f func(ctx context.Context, st *env, di *lsv1alpha1.DeployItem) error) condition {
	return func(ctx context.Context, st *env, di *lsv1alpha1.DeployItem) error {
		if di == nil {
			return errors.New("the item does not exist")
		}
		return f(ctx, st, di)
	}
}

// status returns a condition that depends only on the item.
func status(f func(di *lsv1alpha1.DeployItem) error) condition {
	return existing(func(_ context.Context, _ *env, di *lsv1alpha1.DeployItem) error { return f(di) })
}

func hasPhase(want lsv1alpha1.DeployItemPhase) condition {
	return status(func(di *lsv1alpha1.DeployItem) error {
		if di.Status.Phase != want {
			return fmt.Errorf("the phase is %q, not %q%s", di.Status.Phase, want, because(di))
		}
		return nil
	})
}

// because returns a text with the error of an item, which can be appended to a message. It returns "" if there is no
// error.
func because(di *lsv1alpha1.DeployItem) string {
	if di.Status.LastError == nil {
		return ""
	}
	return ": " + di.Status.LastError.Message
}

func failedWith(code lsv1alpha1.ErrorCode) condition {
	return status(func(di *lsv1alpha1.DeployItem) error {
		e := di.Status.LastError
		if di.Status.Phase != lsv1alpha1.DeployItemPhases.Failed || e == nil || !slices.Contains(e.Codes, code) {
			return fmt.Errorf("the phase is %q, and the error is %+v", di.Status.Phase, e)
		}
		return nil
	})
}

var aborted = status(func(di *lsv1alpha1.DeployItem) error {
	e := di.Status.LastError
	if di.Status.Phase != lsv1alpha1.DeployItemPhases.Failed || e == nil || e.Reason != contract.AbortedReason {
		return fmt.Errorf("the phase is %q, and the error is %+v", di.Status.Phase, e)
	}
	return nil
})

var operationGone = status(func(di *lsv1alpha1.DeployItem) error {
	if operation := di.Annotations[lsv1alpha1.OperationAnnotation]; operation != "" {
		return fmt.Errorf("the item still has the operation %q", operation)
	}
	return nil
})

func observed(generation int64) condition {
	return status(func(di *lsv1alpha1.DeployItem) error {
		if di.Generation != generation || di.Status.ObservedGeneration != generation {
			return fmt.Errorf("the generation is %d and the observed generation is %d, but both should be %d", di.Generation, di.Status.ObservedGeneration, generation)
		}
		return nil
	})
}

func finishedJob(id string) condition {
	return status(func(di *lsv1alpha1.DeployItem) error {
		s := di.Status
		if s.JobID != id || s.JobIDFinished != id || s.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
			return fmt.Errorf("the job is %q, the finished job is %q, the phase is %q%s", s.JobID, s.JobIDFinished, s.Phase, because(di))
		}
		return nil
	})
}

func hasProviderStatus(kind string) condition {
	return status(func(di *lsv1alpha1.DeployItem) error {
		var meta metav1.TypeMeta
		if raw := di.Status.ProviderStatus; raw != nil {
			if err := json.Unmarshal(raw.Raw, &meta); err != nil {
				return fmt.Errorf("decode the provider status: %w", err)
			}
		}
		if meta.Kind != kind {
			return fmt.Errorf("the provider status is %q, not %q%s", meta.Kind, kind, because(di))
		}
		return nil
	})
}

// exports requires that the export Secret of an item contains exactly the text `want`.
func exports(want string) condition {
	return existing(func(ctx context.Context, st *env, di *lsv1alpha1.DeployItem) error {
		ref := di.Status.ExportReference
		if ref == nil {
			return fmt.Errorf("the item exports nothing%s", because(di))
		}
		secret := &corev1.Secret{}
		if err := st.client.Get(ctx, ref.NamespacedName(), secret); err != nil {
			return fmt.Errorf("get the export Secret: %w", err)
		}
		if got := string(secret.Data[lsv1alpha1.DataObjectSecretDataKey]); got != want {
			return fmt.Errorf("the item exports %s, not %s", got, want)
		}
		return nil
	})
}

// calledFor requires that the hook of the demo was called for the item at hook point t at least the given number of
// times.
func calledFor(t extension.HookType, times int) condition {
	return existing(func(_ context.Context, st *env, di *lsv1alpha1.DeployItem) error {
		if got := st.state.called(di.Name, t); got < times {
			return fmt.Errorf("the hook point %s was reached %d times, not %d", t, got, times)
		}
		return nil
	})
}

func gone(_ context.Context, _ *env, di *lsv1alpha1.DeployItem) error {
	if di != nil {
		return fmt.Errorf("the item still exists, in phase %q%s", di.Status.Phase, because(di))
	}
	return nil
}

func secretGone(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
	secret := &corev1.Secret{}
	err := st.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "ingress-export"}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("the Secret %s still exists", secret.Name)
}

func allHooks(_ context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
	if silent := st.state.silent(); len(silent) > 0 {
		return fmt.Errorf("these hook points were never reached: %q", silent)
	}
	return nil
}

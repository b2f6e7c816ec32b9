// SPDX-License-Identifier: Apache-2.0

package landscapertest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const typ lsv1alpha1.DeployItemType = "example.com/kit"

var (
	t0     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	phases = lsv1alpha1.DeployItemPhases
)

// newTestLandscaper returns a Landscaper, a client and a fake clock. The Landscaper uses this clock, and both the
// Landscaper and the client use the same fake API server.
func newTestLandscaper(t *testing.T, o landscapertest.LandscaperOptions) (*landscapertest.Landscaper, client.Client, *testclock.FakeClock) {
	t.Helper()
	scheme, err := landscapertest.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&lsv1alpha1.DeployItem{}).Build()
	clk := testclock.NewFakeClock(t0)
	o.Clock, o.Poll = clk, time.Millisecond
	return landscapertest.NewLandscaper(c, o), c, clk
}

// updateStatus changes the status of the item, as a deployer would.
func updateStatus(t *testing.T, c client.Client, change func(*lsv1alpha1.DeployItem)) {
	t.Helper()
	di := &lsv1alpha1.DeployItem{}
	if err := c.Get(t.Context(), key, di); err != nil {
		t.Fatal(err)
	}
	change(di)
	if err := c.Status().Update(t.Context(), di); err != nil {
		t.Fatal(err)
	}
}

func TestTrigger(t *testing.T) {
	t.Run("Trigger sets the job ID under the job-ID revision", func(t *testing.T) {
		ls, _, _ := newTestLandscaper(t, landscapertest.LandscaperOptions{ManagedBy: "exec", DeployerType: true})
		if err := ls.Deploy(t.Context(), ls.Item("ns", "a", typ, `{"a":1}`)); err != nil {
			t.Fatal(err)
		}
		di, err := ls.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		s := di.Status
		if s.JobID == "" || s.JobIDFinished != "" || s.JobIDGenerationTime == nil || s.TransitionTimes.TriggerTime == nil || s.Phase != "" {
			t.Errorf("status = %+v, want a new job with its times and no phase", s)
		}
		if !contract.HasLandscaperFinalizer(di) || di.Labels[lsv1alpha1.ExecutionManagedByLabel] != "exec" ||
			di.Annotations[lsv1alpha1.DeployerTypeAnnotation] != string(typ) || di.Annotations[lsv1alpha1.OperationAnnotation] != "" {
			t.Errorf("metadata %+v", di.ObjectMeta)
		}
	})
	t.Run("Trigger sets the annotation under the annotation revision", func(t *testing.T) {
		ls, _, _ := newTestLandscaper(t, landscapertest.LandscaperOptions{Revision: contract.RevisionAnnotation})
		if err := ls.Deploy(t.Context(), ls.Item("ns", "a", typ, nil)); err != nil {
			t.Fatal(err)
		}
		di, err := ls.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if di.Annotations[lsv1alpha1.OperationAnnotation] != "reconcile" || di.Annotations[lsv1alpha1.ReconcileTimestampAnnotation] != t0.Format(time.RFC3339) ||
			di.Status.JobID != "" || len(di.Finalizers) != 0 || len(di.Labels) != 0 {
			t.Errorf("item %+v", di)
		}
	})
}

// In TestTriggerKeepsObservedGeneration, a deployer writes the first status of an item while Trigger sets the job.
// Trigger must keep the observedGeneration that the deployer wrote.
func TestTriggerKeepsObservedGeneration(t *testing.T) {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(di).WithStatusSubresource(&lsv1alpha1.DeployItem{}).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if stored := getItem(t, c); stored.Status.ObservedGeneration == 0 {
				stored.Status.ObservedGeneration = 1
				if err := c.Status().Update(ctx, stored); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}).Build()
	if _, err := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{}).Trigger(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := getItem(t, c).Status; got.ObservedGeneration != 1 || got.JobID == "" {
		t.Errorf("status is %+v, want the observedGeneration of the deployer and a job", got)
	}
}

func getItem(t *testing.T, c client.Client) *lsv1alpha1.DeployItem {
	t.Helper()
	di := &lsv1alpha1.DeployItem{}
	if err := c.Get(t.Context(), key, di); err != nil {
		t.Fatal(err)
	}
	return di
}

func TestUpdateReplacesTheConfiguration(t *testing.T) {
	ls, _, _ := newTestLandscaper(t, landscapertest.LandscaperOptions{})
	if err := ls.Deploy(t.Context(), ls.Item("ns", "a", typ, `{"apiVersion":"a/v1","kind":"K","old":1}`)); err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]string{
		`{"new":1}`:                              `{"apiVersion":"a/v1","kind":"K","new":1}`,
		`{"apiVersion":"a/v1","kind":"K","x":2}`: `{"apiVersion":"a/v1","kind":"K","x":2}`,
	} {
		if err := ls.Update(t.Context(), key, config); err != nil {
			t.Fatal(err)
		}
		di, err := ls.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(di.Spec.Configuration.Raw); got != want {
			t.Errorf("configuration is %s, want %s", got, want)
		}
	}
}

func TestApplyTimeouts(t *testing.T) {
	enforce := func(t *testing.T, ls *landscapertest.Landscaper) lsv1alpha1.DeployItem {
		t.Helper()
		if err := ls.ApplyTimeouts(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		di, err := ls.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return *di
	}
	t.Run("Enforce fails a job that was not picked up in time, and no other job", func(t *testing.T) {
		for pickedUp, want := range map[bool]lsv1alpha1.DeployItemPhase{true: "", false: phases.Failed} {
			ls, c, clk := newTestLandscaper(t, landscapertest.LandscaperOptions{})
			if err := ls.Deploy(t.Context(), ls.Item("ns", "a", typ, nil)); err != nil {
				t.Fatal(err)
			}
			if pickedUp {
				updateStatus(t, c, func(di *lsv1alpha1.DeployItem) { di.Status.LastReconcileTime = &metav1.Time{Time: t0} })
			}
			clk.Step(landscapertest.DefaultPickup - time.Second)
			if di := enforce(t, ls); di.Status.Phase != "" {
				t.Error("the timeout was applied too early")
			}
			clk.Step(time.Second)
			di := enforce(t, ls)
			if finished := di.Status.JobIDFinished != ""; di.Status.Phase != want || finished == pickedUp {
				t.Errorf("picked up %t: status %+v", pickedUp, di.Status)
			}
		}
	})
	t.Run("Enforce aborts an annotation run that exceeds its timeout, and fails it in the end", func(t *testing.T) {
		ls, c, clk := newTestLandscaper(t, landscapertest.LandscaperOptions{Revision: contract.RevisionAnnotation})
		if err := ls.Deploy(t.Context(), ls.Item("ns", "a", typ, nil)); err != nil {
			t.Fatal(err)
		}
		if err := ls.SetAnnotations(t.Context(), key, map[string]string{lsv1alpha1.OperationAnnotation: "", lsv1alpha1.ReconcileTimestampAnnotation: ""}); err != nil {
			t.Fatal(err)
		}
		updateStatus(t, c, func(di *lsv1alpha1.DeployItem) {
			di.Status.Phase, di.Status.LastReconcileTime = phases.Progressing, &metav1.Time{Time: t0}
		})
		clk.Step(landscapertest.DefaultProgressing)
		if di := enforce(t, ls); di.Annotations[lsv1alpha1.OperationAnnotation] != "abort" || di.Status.Phase != phases.Progressing {
			t.Errorf("annotations %v, phase %q", di.Annotations, di.Status.Phase)
		}
		clk.Step(landscapertest.DefaultAbort)
		if di := enforce(t, ls); di.Status.Phase != phases.Failed || di.Status.LastError.Reason != contract.AbortingTimeoutReason {
			t.Errorf("status = %+v, want phase Failed and reason %s", di.Status, contract.AbortingTimeoutReason)
		}
	})
	t.Run("Interrupt ends only unfinished jobs", func(t *testing.T) {
		ls, c, _ := newTestLandscaper(t, landscapertest.LandscaperOptions{})
		if err := ls.Deploy(t.Context(), ls.Item("ns", "a", typ, nil)); err != nil {
			t.Fatal(err)
		}
		if err := ls.Interrupt(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		di, err := ls.WaitUntilFinished(t.Context(), key)
		if err != nil || di.Status.Phase != phases.Failed || di.Status.LastError.Reason != "InterruptOperation" {
			t.Errorf("status %+v, %v", di.Status, err)
		}
		updateStatus(t, c, func(di *lsv1alpha1.DeployItem) { di.Status.Phase = phases.Succeeded })
		if err := ls.Interrupt(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if di := enforce(t, ls); di.Status.Phase != phases.Succeeded {
			t.Errorf("phase = %q, want %q", di.Status.Phase, phases.Succeeded)
		}
	})
}

func TestWaitFor(t *testing.T) {
	ls, c, _ := newTestLandscaper(t, landscapertest.LandscaperOptions{})
	if err := ls.Deploy(t.Context(), ls.Item("ns", "a", typ, nil)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := ls.WaitUntilFinished(ctx, key); err == nil || !strings.Contains(err.Error(), "jobID") {
		t.Errorf("got error %v, want one that contains the status", err)
	}
	updateStatus(t, c, func(di *lsv1alpha1.DeployItem) {
		di.Status.JobIDFinished, di.Status.Phase = di.Status.JobID, phases.Progressing
	})
	if _, err := ls.WaitUntilFinished(t.Context(), key); err == nil || !strings.Contains(err.Error(), "Progressing") {
		t.Errorf("got error %v for a finished job whose phase is not final", err)
	}
}

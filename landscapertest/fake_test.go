// SPDX-License-Identifier: Apache-2.0

package landscapertest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

var (
	key     = types.NamespacedName{Namespace: "ns", Name: "a"}
	errBoom = errors.New("boom")
)

func newTestItem(name string) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name = "ns", name
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Init
	return di
}

func TestFakeReturnsResults(t *testing.T) {
	fake := landscapertest.NewFake().
		QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errBoom), landscapertest.SetPhase("Progressing"), landscapertest.ReturnWaitFor("x", 0)).
		SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnError(context.DeadlineExceeded))
	di := newTestItem("a")
	call := func() error { return fake.Reconcile(t.Context(), nil, di, nil) }
	if err := call(); !errors.Is(err, errBoom) {
		t.Errorf("first answer: %v", err)
	}
	if err := call(); err != nil || di.Status.Phase != "Progressing" {
		t.Errorf("second answer: %v, phase %q", err, di.Status.Phase)
	}
	if err := call(); err == nil || err.Error() != "waiting for x" {
		t.Errorf("third answer: %v", err)
	}
	for range 2 {
		if err := call(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("answer of an empty queue: %v", err)
		}
	}
	if err := fake.Delete(t.Context(), nil, di, nil); err != nil {
		t.Errorf("answer without a script: %v", err)
	}
	if n := fake.CountCalls(key, contract.ActionReconcile); n != 5 {
		t.Errorf("%d calls logged", n)
	}
	first := fake.ListCalls(key)[0]
	if !first.Returned || !errors.Is(first.Err, errBoom) || first.InitialPhase != lsv1alpha1.DeployItemPhases.Init || first.HasContext || first.HasTarget {
		t.Errorf("logged %+v", first)
	}
}

func TestFakeBlocks(t *testing.T) {
	fake := landscapertest.NewFake().QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := fake.Reconcile(ctx, nil, newTestItem("a"), nil); !errors.Is(err, errBoom) {
			t.Errorf("returned %v", err)
		}
	})
	if c, err := fake.WaitForCall(t.Context(), key, contract.ActionReconcile, 1); err != nil || c.Returned {
		t.Errorf("AwaitCall(...) = %+v, %v, want a call that has not returned", c, err)
	}
	cancel(errBoom)
	c, err := fake.WaitForReturn(t.Context(), key, contract.ActionReconcile, 1)
	if err != nil || !errors.Is(c.Cause, errBoom) {
		t.Errorf("AwaitReturn(...) = %+v, %v, want the cause %v", c, err, errBoom)
	}
	wg.Wait()
	short, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := fake.WaitForCall(short, key, contract.ActionDelete, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitCall without a call: %v", err)
	}
}

func TestFakeReportsConcurrentCalls(t *testing.T) {
	release := make(chan struct{})
	fake := landscapertest.NewFake().SetDefaultAnswer(contract.ActionReconcile, landscapertest.BlockIgnoringContext(release))
	var wg sync.WaitGroup
	call := func(name string) {
		wg.Go(func() { _ = fake.Reconcile(t.Context(), nil, newTestItem(name), nil) })
	}
	call("a")
	call("b")
	for _, name := range []string{"a", "b"} {
		if _, err := fake.WaitForCall(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, contract.ActionReconcile, 1); err != nil {
			t.Fatal(err)
		}
	}
	if faults := fake.OverlappingCalls(); len(faults) != 0 {
		t.Errorf("concurrent calls for two items: got faults %v, want none", faults)
	}
	call("a")
	if _, err := fake.WaitForCall(t.Context(), key, contract.ActionReconcile, 2); err != nil {
		t.Fatal(err)
	}
	if faults := fake.OverlappingCalls(); len(faults) != 1 {
		t.Errorf("concurrent calls for one item: got faults %v", faults)
	}
	close(release)
	wg.Wait()
}

func TestFakePanics(t *testing.T) {
	fake := landscapertest.NewFake().QueueAnswers(contract.ActionReconcile, landscapertest.Panic("ouch"))
	func() {
		defer func() {
			if v := recover(); v != "ouch" {
				t.Errorf("recovered %v", v)
			}
		}()
		_ = fake.Reconcile(t.Context(), nil, newTestItem("a"), nil)
	}()
	if c := fake.ListCalls(key)[0]; !c.Returned || !c.Panicked {
		t.Errorf("logged %+v", c)
	}
}

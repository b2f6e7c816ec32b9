// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/deployermain/registration"
)

func TestSubscriptionReceivesRows(t *testing.T) {
	s := newStore()
	for i := range batchSize + 1 {
		s.set(row{ID: fmt.Sprintf("DeployItem/shop/item-%04d", i), State: stateSucceeded})
	}
	s.set(row{ID: "DeployItem/shop/z", State: stateFailed})
	sub := s.subscribe(1)
	defer sub.close()

	t.Run("the first messages contain all rows in batches, failed rows first [U6]", func(t *testing.T) {
		got := sub.take()
		if len(got) != 2 || len(got[0].Set) != batchSize || len(got[1].Set) != 2 || got[0].Set[0].ID != "DeployItem/shop/z" {
			t.Errorf("got %d messages, want 2, which begin with the failed row", len(got))
		}
	})
	t.Run("later messages contain only changed rows, once [U6]", func(t *testing.T) {
		for i := range 100 {
			s.set(row{ID: "DeployItem/shop/item-0001", State: stateRunning, Version: fmt.Sprint(i)})
		}
		s.set(row{ID: "DeployItem/shop/item-0002", State: stateSucceeded}) // unchanged
		s.remove("DeployItem/shop/z")
		want := []rowChanges{{Set: []row{{ID: "DeployItem/shop/item-0001", State: stateRunning, Version: "99"}}}, {Remove: []string{"DeployItem/shop/z"}}}
		if diff := cmp.Diff(want, sub.take()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if got := sub.take(); got != nil {
			t.Errorf("got %v without a change, want nothing", got)
		}
	})
	t.Run("the number of subscriptions is limited [U8]", func(t *testing.T) {
		if s.subscribe(1) != nil {
			t.Error("got a second subscription, want nil")
		}
	})
}

func newItem(change func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7"}}
	di.Spec.Type = "example.org/x"
	change(di)
	return di
}

func TestRowStates(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*lsv1alpha1.DeployItem)
		want   string
	}{
		"an item whose run failed is failed":              {func(di *lsv1alpha1.DeployItem) { di.Status.Phase = "Failed" }, stateFailed},
		"an item whose deletion failed is failed":         {func(di *lsv1alpha1.DeployItem) { di.Status.Phase = "DeleteFailed" }, stateFailed},
		"an item with a run in progress is running":       {func(di *lsv1alpha1.DeployItem) { di.Status.Phase = "Progressing" }, stateRunning},
		"an item that no deployer has started is waiting": {func(*lsv1alpha1.DeployItem) {}, stateWaiting},
		"an item whose run is finished has succeeded":     {func(di *lsv1alpha1.DeployItem) { di.Status.Phase = "Succeeded" }, stateSucceeded},
		"an item of an Execution that has no job yet is idle": {func(di *lsv1alpha1.DeployItem) {
			di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "e"}
		}, stateIdle},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newItemRow(newItem(tc.change), time.Now()); got.State != tc.want {
				t.Errorf("got %+v, want state %s", got, tc.want)
			}
		})
	}
}

func TestCacheKeepsNoConfiguration(t *testing.T) {
	di := newItem(func(di *lsv1alpha1.DeployItem) {
		di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"password":"hunter2"}`)}
		di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"password":"hunter2"}`)}
		di.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}
		di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "exec", lsv1alpha1.ExecutionManagedNameLabel: "web-item"}
	})
	w := &watcher{clock: clock.RealClock{}}
	reduced, err := w.toRowObject(di)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the cached item contains neither configuration nor provider status [U5]", func(t *testing.T) {
		if text := fmt.Sprintf("%+v", reduced); strings.Contains(text, "hunter2") {
			t.Errorf("got %s", text)
		}
	})
	again, err := w.toRowObject(reduced)
	if err != nil || again != reduced {
		t.Errorf("a second call returned %v, %v; want its argument", again, err)
	}
	got := reduced.(*rowObject).row
	if got.ID != "DeployItem/shop/web" || got.Parent != "Execution/shop/exec" || got.Label != "web-item" || got.Version != "7" {
		t.Errorf("row %+v", got)
	}
}

func TestRowTextsAreShort(t *testing.T) {
	long := strings.Repeat("x\n", 5000)
	r := newItemRow(newItem(func(di *lsv1alpha1.DeployItem) {
		di.Spec.Type = lsv1alpha1.DeployItemType(long)
		di.Status.LastError = &lsv1alpha1.Error{Message: long}
		di.Labels = map[string]string{lsv1alpha1.ExecutionManagedNameLabel: long}
	}), time.Now())
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 2048 {
		t.Errorf("a row has %d bytes, want at most 2048", len(raw))
	}
}

func TestParentsOfRows(t *testing.T) {
	in := &lsv1alpha1.Installation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sub", Labels: map[string]string{lsv1alpha1.EncompassedByLabel: "root"}}}
	if got := newInstallationRow(in).Parent; got != "Installation/shop/root" {
		t.Errorf("the parent of a sub-installation is %q", got)
	}
	exec := &lsv1alpha1.Execution{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sub", OwnerReferences: []metav1.OwnerReference{{Kind: "Installation", Name: "sub"}}}}
	if got := newExecutionRow(exec).Parent; got != "Installation/shop/sub" {
		t.Errorf("the parent of an Execution is %q", got)
	}
}

func TestDeployerIsWorkingWhileItsLeaseIsValid(t *testing.T) {
	now := time.Now()
	lease := func(age time.Duration, holder string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ls", Name: "x", Annotations: map[string]string{
			registration.Annotation: registration.Registration{Name: "d", Type: "example.org/x", Version: "v1"}.Encode(),
		}}}
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &holder, new(int32(15))
		l.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-age)}
		return l
	}
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		want  bool
	}{
		"a renewed lease is valid":    {lease(time.Second, "pod-1"), true},
		"an old lease has expired":    {lease(time.Minute, "pod-1"), false},
		"a lease needs a holder, too": {lease(time.Second, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := newDeployer(tc.lease, now)
			if !ok || got.Working != tc.want || got.Version != "v1" || got.Lease != "ls/x" {
				t.Errorf("got %+v, %t; want working %t", got, ok, tc.want)
			}
		})
	}
	if _, ok := newDeployer(&coordinationv1.Lease{}, now); ok {
		t.Error("a lease without a registration is a deployer")
	}
}

func TestIDsOfObjects(t *testing.T) {
	if got := formatID(kindDeployItem, types.NamespacedName{Namespace: "a", Name: "b"}); got != "DeployItem/a/b" {
		t.Errorf("got %q", got)
	}
}

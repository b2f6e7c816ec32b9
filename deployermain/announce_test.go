// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/deployermain/registration"
)

func TestAnnouncer(t *testing.T) {
	world := func(identity string) (*fake.Clientset, *announcer, *testclock.FakeClock) {
		c, clk := fake.NewClientset(), testclock.NewFakeClock(time.Unix(1000, 0))
		leases := registrar{LeasesGetter: c.CoordinationV1(), value: registration.Registration{Name: "me"}.Encode()}.Leases("ns")
		return c, &announcer{leases: leases, name: "me-registration", identity: identity, log: logr.Discard(), clock: clk}, clk
	}
	lease := func(t *testing.T, c *fake.Clientset) *coordinationv1.Lease {
		t.Helper()
		l, err := c.CoordinationV1().Leases("ns").Get(t.Context(), "me-registration", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	t.Run("a deployer without leader election registers itself until it stops [F87]", func(t *testing.T) {
		c, a, clk := world("pod-1")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Start(ctx) }()
		for _, want := range []time.Duration{0, announcePeriod} {
			waitFor(t, func() bool {
				list, err := c.CoordinationV1().Leases("ns").List(ctx, metav1.ListOptions{LabelSelector: registration.Label})
				return err == nil && len(list.Items) == 1 && list.Items[0].Spec.RenewTime.Time.Equal(time.Unix(1000, 0).Add(want)) && clk.HasWaiters()
			})
			clk.Step(announcePeriod)
		}
		l := lease(t, c)
		if *l.Spec.HolderIdentity != "pod-1" || *l.Spec.LeaseDurationSeconds != 180 || l.Annotations[registration.Annotation] == "" {
			t.Errorf("the lease is %+v", l)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if got := *lease(t, c).Spec.HolderIdentity; got != "" {
			t.Errorf("the holder of the lease is %q after the end", got)
		}
	})
	t.Run("a replica does not release the registration of another one [F87]", func(t *testing.T) {
		c, a, _ := world("pod-1")
		other := *a
		other.identity = "pod-2"
		for _, step := range []func() error{
			func() error { return a.write(t.Context(), "pod-1") },
			func() error { return other.write(t.Context(), "pod-2") },
			func() error { return a.write(t.Context(), "") },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		if got := *lease(t, c).Spec.HolderIdentity; got != "pod-2" {
			t.Errorf("the holder is %q", got)
		}
	})
	t.Run("a 404 that does not name the lease does not end the registration [F70]", func(t *testing.T) {
		c, a, clk := world("pod-1")
		var reads atomic.Int32
		c.PrependReactor("*", "leases", func(action k8stesting.Action) (bool, runtime.Object, error) {
			if action.GetVerb() == "get" {
				reads.Add(1)
			}
			return true, nil, apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "leases"}, a.name, "404 page not found", 0, true)
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Start(ctx) }()
		waitFor(t, func() bool { clk.Step(announcePeriod); return reads.Load() > 1 })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("missing permissions end the registration but not the program [F87]", func(t *testing.T) {
		c, a, _ := world("pod-1")
		requests := 0
		c.PrependReactor("*", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
			requests++
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", errors.New("no"))
		})
		if err := a.Start(t.Context()); err != nil || requests != 1 {
			t.Errorf("%d requests, %v", requests, err)
		}
	})
}

// waitFor waits until done returns true.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatal("it did not happen within 30 s")
		case <-tick.C:
		}
	}
}

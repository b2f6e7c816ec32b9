// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

var itemResource = schema.GroupResource{Group: "landscaper.gardener.cloud", Resource: "deployitems"}

// stored returns a client with one item, and the item as it is stored.
func stored(t *testing.T, change ...func(*lsv1alpha1.DeployItem)) (client.Client, *calls, *lsv1alpha1.DeployItem) {
	t.Helper()
	c, count := newClient(t, item(change...))
	di := &lsv1alpha1.DeployItem{}
	read(t, c, di)
	return c, count, di
}

func read(t *testing.T, c client.Client, di *lsv1alpha1.DeployItem) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(item()), di); err != nil {
		t.Fatalf("get: %v", err)
	}
}

func both(di *lsv1alpha1.DeployItem) {
	di.Labels = map[string]string{"new": "1"}
	di.Status.Phase = "Init"
}

func TestSend(t *testing.T) {
	cases := map[string]struct {
		change       func(*lsv1alpha1.DeployItem)
		order        patch.Order
		main, status int32
		first        string
	}{
		"nothing: no call [K8]":       {func(*lsv1alpha1.DeployItem) {}, patch.MetadataFirst, 0, 0, ""},
		"metadata: one call [K6]":     {func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"new": "1"} }, patch.MetadataFirst, 1, 0, "labels"},
		"status: one call [K6]":       {func(di *lsv1alpha1.DeployItem) { di.Status.Phase = "Init" }, patch.MetadataFirst, 0, 1, "phase"},
		"both, metadata first [Kx1]":  {both, patch.MetadataFirst, 1, 1, "labels"},
		"both, status first":          {both, patch.StatusFirst, 1, 1, "phase"},
		"one part, status first [K6]": {func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"a/b"} }, patch.StatusFirst, 1, 0, "finalizers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, count, di := stored(t, func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"old": "1"} })
			base := di.DeepCopy()
			tc.change(di)
			left, err := patch.Send(t.Context(), c, di, mustDiff(t, base, di), tc.order)
			if err != nil || !left.Empty() {
				t.Fatalf("Send() = %+v, %v, want nothing left", left, err)
			}
			if m, s := count.main.Load(), count.status.Load(); m != tc.main || s != tc.status {
				t.Errorf("calls = %d main, %d status, want %d and %d", m, s, tc.main, tc.status)
			}
			if len(count.bodies) > 0 && !strings.Contains(count.bodies[0], tc.first) {
				t.Errorf("first call %s, want it to hold %s", count.bodies[0], tc.first)
			}
			for _, pt := range count.types {
				if pt != types.MergePatchType {
					t.Errorf("patch type %s, want merge patches [K13]", pt)
				}
			}
			now := &lsv1alpha1.DeployItem{}
			read(t, c, now)
			if diff := cmp.Diff(now, di); diff != "" {
				t.Errorf("the object is not the stored one (-stored +obj):\n%s", diff)
			}
		})
	}
}

func TestSendChainsResourceVersions(t *testing.T) {
	c, count, di := stored(t)
	base := di.DeepCopy()
	both(di)
	t.Run("the second call carries what the first returned [Kx2]", func(t *testing.T) {
		if _, err := patch.Send(t.Context(), c, di, mustDiff(t, base, di), patch.MetadataFirst); err != nil {
			t.Fatalf("Send: %v", err)
		}
		want := []string{`"resourceVersion":"7"`, `"resourceVersion":"8"`}
		for i, body := range count.bodies {
			if !strings.Contains(body, want[i]) {
				t.Errorf("call %d is %s, want %s in it", i, body, want[i])
			}
		}
	})
}

func TestSendStale(t *testing.T) {
	for name, order := range map[string]patch.Order{"metadata first": patch.MetadataFirst, "status first": patch.StatusFirst} {
		t.Run(name, func(t *testing.T) {
			c, _, di := stored(t)
			base := di.DeepCopy()
			base.ResourceVersion = "6"
			both(di)
			before, changes := di.DeepCopy(), mustDiff(t, base, di)
			left, err := patch.Send(t.Context(), c, di, changes, order)
			if !apierrors.IsConflict(err) {
				t.Fatalf("Send() error = %v, want a conflict [K27]", err)
			}
			if diff := cmp.Diff(changes, left); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			assertUntouched(t, before, di)
			now := &lsv1alpha1.DeployItem{}
			read(t, c, now)
			if now.Status.Phase != "" || len(now.Labels) > 0 {
				t.Errorf("a stale patch was applied: %+v", now)
			}
		})
	}
}

func TestSendSecondCallFails(t *testing.T) {
	cases := map[string]struct {
		err   error
		check func(error) bool
	}{
		"conflict":                   {apierrors.NewConflict(itemResource, "web", nil), apierrors.IsConflict},
		"invalid [Kx5]":              {apierrors.NewInvalid(schema.GroupKind{Kind: "DeployItem"}, "web", nil), apierrors.IsInvalid},
		"not found, nothing removed": {apierrors.NewNotFound(itemResource, "web"), apierrors.IsNotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, count, di := stored(t)
			count.statusErr = tc.err
			base := di.DeepCopy()
			both(di)
			left, err := patch.Send(t.Context(), c, di, mustDiff(t, base, di), patch.MetadataFirst)
			if !tc.check(err) {
				t.Fatalf("Send() error = %v, want it recognisable", err)
			}
			if di.Labels["new"] != "1" || di.ResourceVersion != "8" {
				t.Errorf("the object is not the first call's response: %+v", di.ObjectMeta)
			}
			if left.Metadata != nil {
				t.Errorf("metadata left: %s", left.Metadata)
			}
			wantJSON(t, "what is left can be sent as it is [Kx3]",
				`{"metadata":{"resourceVersion":"8"},"status":{"observedGeneration":0,"phase":"Init"}}`, left.Status)

			count.statusErr = nil
			if _, err := patch.Send(t.Context(), c, di, left, patch.MetadataFirst); err != nil {
				t.Errorf("send what is left: %v", err)
			}
			if di.Status.Phase != "Init" || count.main.Load() != 1 {
				t.Errorf("phase %q after %d main calls, want Init after 1", di.Status.Phase, count.main.Load())
			}
		})
	}
}

func TestSendLastFinalizer(t *testing.T) {
	t.Run("the object may be gone afterwards [Kx13]", func(t *testing.T) {
		c, count, di := stored(t, func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"a/b"} })
		if err := c.Delete(t.Context(), di.DeepCopy()); err != nil {
			t.Fatalf("delete: %v", err)
		}
		read(t, c, di)
		base := di.DeepCopy()
		di.Finalizers, di.Status.Phase = nil, "Deleting"
		left, err := patch.Send(t.Context(), c, di, mustDiff(t, base, di), patch.MetadataFirst)
		if err != nil || !left.Empty() {
			t.Errorf("Send() = %+v, %v, want nothing left and no error", left, err)
		}
		if count.main.Load() != 1 || count.status.Load() != 1 {
			t.Errorf("calls = %d main, %d status, want one each", count.main.Load(), count.status.Load())
		}
	})
	t.Run("a first call that finds nothing is an error", func(t *testing.T) {
		c, _, di := stored(t, func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"a/b"} })
		if err := c.Delete(t.Context(), di.DeepCopy()); err != nil {
			t.Fatalf("delete: %v", err)
		}
		read(t, c, di)
		gone, _ := newClient(t)
		base := di.DeepCopy()
		di.Finalizers = nil
		if _, err := patch.Send(t.Context(), gone, di, mustDiff(t, base, di), patch.MetadataFirst); !apierrors.IsNotFound(err) {
			t.Errorf("Send() error = %v, want not found", err)
		}
	})
}

func TestFence(t *testing.T) {
	c, count, di := stored(t)
	if err := patch.Fence(t.Context(), c, di.DeepCopy()); err != nil {
		t.Fatalf("Fence() of the stored version: %v", err)
	}
	wantJSON(t, "a fence changes nothing", `{"metadata":{"resourceVersion":"7"}}`, []byte(count.bodies[0]))

	stale := di.DeepCopy()
	stale.ResourceVersion = "6"
	if err := patch.Fence(t.Context(), c, stale); !apierrors.IsConflict(err) {
		t.Errorf("Fence() of an old version: %v, want a conflict", err)
	}
	stale.ResourceVersion = ""
	if err := patch.Fence(t.Context(), c, stale); err == nil || count.main.Load() != 2 {
		t.Errorf("Fence() without a resourceVersion: %v after %d calls, want an error and no call", err, count.main.Load())
	}
}

func TestSendUnstructured(t *testing.T) {
	c, _, di := stored(t)
	base := asUnstructured(t, di, true)
	wanted := base.DeepCopy()
	wanted.SetAnnotations(map[string]string{"x/y": "1"})
	wanted.Object["status"] = map[string]any{"phase": "Init"}
	if _, err := patch.Send(t.Context(), c, wanted, mustDiff(t, base, wanted), patch.MetadataFirst); err != nil {
		t.Fatalf("Send: %v", err)
	}
	read(t, c, di)
	if di.Annotations["x/y"] != "1" || di.Status.Phase != "Init" || wanted.GetResourceVersion() != di.ResourceVersion {
		t.Errorf("stored %+v, returned %v", di, wanted.Object)
	}
}

// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"errors"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/internal/patching"
)

var itemResource = schema.GroupResource{Group: "landscaper.gardener.cloud", Resource: "deployitems"}

// newStoredItem returns a client of a fake API with one item, the calls that the fake API records, and the stored item.
func newStoredItem(t *testing.T, change ...func(*lsv1alpha1.DeployItem)) (client.Client, *requestLog, *lsv1alpha1.DeployItem) {
	t.Helper()
	c, count := newClient(t, newItem(change...))
	di := &lsv1alpha1.DeployItem{}
	readItem(t, c, di)
	return c, count, di
}

func readItem(t *testing.T, c client.Client, di *lsv1alpha1.DeployItem) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(newItem()), di); err != nil {
		t.Fatalf("get: %v", err)
	}
}

func changeBoth(di *lsv1alpha1.DeployItem) {
	di.Labels = map[string]string{"new": "1"}
	di.Status.Phase = "Init"
}

func TestSend(t *testing.T) {
	cases := map[string]struct {
		change       func(*lsv1alpha1.DeployItem)
		main, status int32
		first        string
	}{
		"no changes need no request [K8]":                                 {func(*lsv1alpha1.DeployItem) {}, 0, 0, ""},
		"changed metadata needs one request [K6]":                         {func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"new": "1"} }, 1, 0, "labels"},
		"a changed finalizer needs one request":                           {func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"a/b"} }, 1, 0, "finalizers"},
		"a changed status needs one request [K6]":                         {func(di *lsv1alpha1.DeployItem) { di.Status.Phase = "Init" }, 0, 1, "phase"},
		"changed status and metadata need two requests, the status first": {changeBoth, 1, 1, "phase"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, count, di := newStoredItem(t, func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"old": "1"} })
			base := di.DeepCopy()
			tc.change(di)
			left, err := itempatch.Send(t.Context(), c, di, mustDiff(t, base, di))
			if err != nil || !left.IsEmpty() {
				t.Fatalf("Send() = %+v, %v, want no remaining changes", left, err)
			}
			if m, s := count.main.Load(), count.status.Load(); m != tc.main || s != tc.status {
				t.Errorf("calls = %d main, %d status, want %d and %d", m, s, tc.main, tc.status)
			}
			if len(count.bodies) > 0 && !strings.Contains(count.bodies[0], tc.first) {
				t.Errorf("the first call is %s, want it to contain %s", count.bodies[0], tc.first)
			}
			for _, pt := range count.types {
				if pt != types.MergePatchType {
					t.Errorf("patch type %s, want merge patches [K13]", pt)
				}
			}
			now := &lsv1alpha1.DeployItem{}
			readItem(t, c, now)
			if diff := cmp.Diff(now, di); diff != "" {
				t.Errorf("the object is not the stored one (-stored +obj):\n%s", diff)
			}
		})
	}
}

func TestSendChainsResourceVersions(t *testing.T) {
	c, count, di := newStoredItem(t)
	base := di.DeepCopy()
	changeBoth(di)
	t.Run("the second request contains the resourceVersion that the first returned [Kx2]", func(t *testing.T) {
		if _, err := itempatch.Send(t.Context(), c, di, mustDiff(t, base, di)); err != nil {
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

func TestSendOfStaleChanges(t *testing.T) {
	c, _, di := newStoredItem(t)
	base := di.DeepCopy()
	base.ResourceVersion = "6"
	changeBoth(di)
	before, changes := di.DeepCopy(), mustDiff(t, base, di)
	left, err := itempatch.Send(t.Context(), c, di, changes)
	if !apierrors.IsConflict(err) {
		t.Fatalf("Send() error = %v, want a conflict [K27]", err)
	}
	if diff := cmp.Diff(changes, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	assertUnchanged(t, before, di)
	now := &lsv1alpha1.DeployItem{}
	readItem(t, c, now)
	if now.Status.Phase != "" || len(now.Labels) > 0 {
		t.Errorf("a stale patch was applied: %+v", now)
	}
}

func TestSendSecondCallFails(t *testing.T) {
	cases := map[string]struct {
		err   error
		check func(error) bool
	}{
		"conflict":                                  {apierrors.NewConflict(itemResource, "web", nil), apierrors.IsConflict},
		"the second request is invalid [Kx5]":       {apierrors.NewInvalid(schema.GroupKind{Kind: "DeployItem"}, "web", nil), apierrors.IsInvalid},
		"the second request does not find the item": {apierrors.NewNotFound(itemResource, "web"), apierrors.IsNotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, count, di := newStoredItem(t)
			count.mainErr = tc.err
			base := di.DeepCopy()
			changeBoth(di)
			left, err := itempatch.Send(t.Context(), c, di, mustDiff(t, base, di))
			if !tc.check(err) {
				t.Fatalf("Send() error = %v, want the error of the API server", err)
			}
			if di.Status.Phase != "Init" || di.ResourceVersion != "8" {
				t.Errorf("the object is not the first call's response: %+v", di.ObjectMeta)
			}
			want := itempatch.Changes{Metadata: map[string]any{"labels": map[string]any{"new": "1"}}, Version: "8"}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("what is left cannot be sent as it is [Kx3] (-want +got):\n%s", diff)
			}
			count.mainErr = nil
			if _, err := itempatch.Send(t.Context(), c, di, left); err != nil {
				t.Errorf("send what is left: %v", err)
			}
			if di.Labels["new"] != "1" || count.status.Load() != 1 {
				t.Errorf("labels %v after %d status calls, want one", di.Labels, count.status.Load())
			}
		})
	}
}

func TestCheckStored(t *testing.T) {
	c, count, di := newStoredItem(t)
	if err := itempatch.CheckStored(t.Context(), c, di.DeepCopy()); err != nil {
		t.Fatalf("Fence() of the stored version: %v", err)
	}
	expectJSON(t, "a fence changes nothing", `{"metadata":{"resourceVersion":"7"}}`, []byte(count.bodies[0]))

	stale := di.DeepCopy()
	stale.ResourceVersion = "6"
	if err := itempatch.CheckStored(t.Context(), c, stale); !apierrors.IsConflict(err) {
		t.Errorf("Fence() of an old version: %v, want a conflict", err)
	}
	stale.ResourceVersion = ""
	if err := itempatch.CheckStored(t.Context(), c, stale); err == nil || count.main.Load() != 2 {
		t.Errorf("Fence() without a resourceVersion: %v after %d calls, want an error and no call", err, count.main.Load())
	}
}

func TestSendUnstructured(t *testing.T) {
	c, _, di := newStoredItem(t)
	base := toUnstructured(t, di, true)
	wanted := base.DeepCopy()
	wanted.SetAnnotations(map[string]string{"x/y": "1"})
	wanted.Object["status"] = map[string]any{"phase": "Init"}
	if _, err := itempatch.Send(t.Context(), c, wanted, mustDiff(t, base, wanted)); err != nil {
		t.Fatalf("Send: %v", err)
	}
	readItem(t, c, di)
	if di.Annotations["x/y"] != "1" || di.Status.Phase != "Init" || wanted.GetResourceVersion() != di.ResourceVersion {
		t.Errorf("stored %+v, returned %v", di, wanted.Object)
	}
}

var sizeErrors = map[string]error{
	"etcd":  &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request is too large"}},
	"limit": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
}

func TestSendReportsTooLargeObject(t *testing.T) {
	for name, refused := range sizeErrors {
		t.Run(name, func(t *testing.T) {
			c, count, di := newStoredItem(t)
			count.statusErr = refused
			base := di.DeepCopy()
			di.Status.Phase = "Init"
			_, err := itempatch.Send(t.Context(), c, di, mustDiff(t, base, di))
			sized := &patching.SizeError{}
			if !errors.As(err, &sized) || !errors.Is(err, refused) || !patching.IsTooLarge(err) {
				t.Fatalf("Send() error = %v, want a SizeError", err)
			}
			if text := err.Error(); !strings.Contains(text, "too large to be stored") || !strings.Contains(text, "default/web") {
				t.Errorf("text %q does not contain the object and the error", text)
			}
		})
	}
}

// TestSendWithoutPatchPermission tests a client with the rights of Landscaper's own role, which allows update but not
// patch.
func TestSendWithoutPatchPermission(t *testing.T) {
	refused := apierrors.NewForbidden(itemResource, "web", errors.New(`User "u" cannot patch resource "deployitems"`))
	t.Run("changes and checks are sent as updates of the stored version [F59]", func(t *testing.T) {
		c, count, di := newStoredItem(t)
		count.mainErr, count.statusErr = refused, refused
		base := di.DeepCopy()
		changeBoth(di)
		left, err := itempatch.Send(t.Context(), c, di, mustDiff(t, base, di))
		if err != nil || !left.IsEmpty() {
			t.Fatalf("Send() = %+v, %v", left, err)
		}
		now := &lsv1alpha1.DeployItem{}
		readItem(t, c, now)
		if diff := cmp.Diff(now, di); diff != "" || now.Status.Phase != "Init" || now.Labels["new"] != "1" {
			t.Errorf("stored %+v (-stored +obj):\n%s", now, diff)
		}
		if err := itempatch.CheckStored(t.Context(), c, di.DeepCopy()); err != nil {
			t.Errorf("Fence() of the stored version: %v", err)
		}
		if m, s := count.main.Load(), count.status.Load(); m != 1 || s != 1 {
			t.Errorf("got %d and %d attempts to patch, want one for each endpoint", m, s)
		}
		if err := itempatch.CheckStored(t.Context(), c, base); !apierrors.IsConflict(err) {
			t.Errorf("Fence() of an old version: %v, want a conflict", err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/patch"
)

func newStatusError(code int32, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: text}}
}

var sizeErrors = map[string]error{
	"etcd":    newStatusError(500, "etcdserver: request is too large"),
	"grpc":    newStatusError(500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097500 vs. 2097152)"),
	"limit":   newStatusError(413, "limit is 3145728"),
	"reason":  apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	"wrapped": fmt.Errorf("patch status: %w", newStatusError(500, "etcdserver: request is too large")),
}

func TestPermanent(t *testing.T) {
	for name, err := range sizeErrors {
		t.Run(name, func(t *testing.T) {
			if !patch.IsTooLarge(err) {
				t.Errorf("Permanent(%v) = false, want true", err)
			}
		})
	}
	others := map[string]error{
		"nil":                             nil,
		"an error without a status":       errors.New("request is too large"),
		"a conflict":                      newStatusError(409, "request is too large"),
		"another error with code 500":     newStatusError(500, "etcdserver: leader changed"),
		"another ResourceExhausted error": newStatusError(500, "rpc error: code = ResourceExhausted desc = etcdserver: too many requests"),
		"a FieldError":                    &patch.FieldError{Path: "spec"},
	}
	for name, err := range others {
		t.Run("IsTooLarge returns false for "+name, func(t *testing.T) {
			if patch.IsTooLarge(err) {
				t.Errorf("IsTooLarge(%v) = true, want false", err)
			}
		})
	}
}

// TestApplyToReplacedObject tests a conflict that occurs because another object with the same name has replaced the
// object.
func TestApplyToReplacedObject(t *testing.T) {
	c, _, di := newStoredItem(t, func(di *lsv1alpha1.DeployItem) { di.UID = "first" })
	if err := c.Delete(t.Context(), di.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	second := newItem(func(di *lsv1alpha1.DeployItem) { di.UID, di.ResourceVersion, di.Generation = "second", "", 2 })
	if err := c.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	p := &patch.Patch{}
	p.Append(setLabel("mine", "1"))
	t.Run("a patch is not applied to a new object with the same name [Kx4]", func(t *testing.T) {
		if result := apply(t, p, c, di); !result.Gone || result.Reads != 1 {
			t.Errorf("result %+v, want gone after one read", result)
		}
		now := &lsv1alpha1.DeployItem{}
		read(t, c, now)
		if now.UID != "second" || len(now.Labels) != 0 {
			t.Errorf("%s has the labels %v", now.UID, now.Labels)
		}
	})
}

// TestApplyToUnservedKind checks that a 404 that names no object, for example of a proxy, is an error.
func TestApplyToUnservedKind(t *testing.T) {
	gadgets := schema.GroupResource{Group: "example.org", Resource: "gadgets"}
	for name, tc := range map[string]struct {
		request string
		opts    []patch.Option
	}{
		"a patch of the main resource":                      {"patch ", []patch.Option{patch.WithStatusSubresource(true)}},
		"a patch of the status":                             {"patch status", []patch.Option{patch.WithStatusSubresource(true)}},
		"a patch of an object without a status subresource": {"patch", nil},
		"a read, which follows a conflict,":                 {"get ", []patch.Option{patch.WithStatusSubresource(true)}},
	} {
		t.Run("an object is not gone because "+name+" does not find its kind [F70]", func(t *testing.T) {
			s := newServer(t, `{}`)
			s.refuse = func(request string) error {
				switch {
				case strings.HasPrefix(request, tc.request):
					return apierrors.NewGenericServerResponse(404, "patch", gadgets, "web", "404 page not found", 0, true)
				case tc.request == "get ":
					return apierrors.NewConflict(gadgets, "web", errors.New("modified"))
				}
				return nil
			}
			p := &patch.Patch{}
			p.Labels().Set("a", "1")
			p.Status().Set("state", "b")
			if result, err := p.Apply(t.Context(), s, s.raw(), tc.opts...); !apierrors.IsNotFound(err) || result.Gone || result.Left == nil {
				t.Errorf("error %v, result %+v", err, result)
			}
		})
	}
}

// TestApplyToTerminatingObject checks that an object counts as gone only if the patch removed the last finalizer and
// nothing else prevents the removal of the object.
func TestApplyToTerminatingObject(t *testing.T) {
	for name, tc := range map[string]struct {
		held  []string
		grace int64
		left  []string
		gone  bool
	}{
		"the last finalizer is removed [Kx13]":         {[]string{"a/b"}, 0, nil, true},
		"the object terminates gracefully, like a Pod": {[]string{"a/b"}, 30, nil, false},
		"the object had no finalizer and still exists": {nil, 0, nil, false},
		"another client added a finalizer":             {[]string{"a/b"}, 0, []string{"c/d"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			terminating := func(obj client.Object) {
				at := metav1.Unix(1, 0)
				obj.SetDeletionTimestamp(&at)
				obj.SetDeletionGracePeriodSeconds(&tc.grace)
			}
			base, _ := newClient(t)
			statuses := 0
			c := interceptor.NewClient(base.(client.WithWatch), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
					obj.SetResourceVersion("8")
					terminating(obj)
					obj.SetFinalizers(tc.left)
					return nil
				},
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					statuses++
					obj.SetResourceVersion("9")
					return nil
				},
			})
			di := newItem(func(di *lsv1alpha1.DeployItem) { di.Finalizers, di.Status.ObservedGeneration = tc.held, 1 })
			terminating(di)
			p := &patch.Patch{}
			p.Metadata().Set("finalizers", nil)
			p.Labels().Set("a", "1")
			p.Status().Set("phase", "Deleting")
			result := apply(t, p, c, di, patch.WithStatusSubresource(true))
			if result.Gone != tc.gone || (statuses == 0) != tc.gone {
				t.Errorf("gone: %t, %d writes of the status; want gone: %t", result.Gone, statuses, tc.gone)
			}
		})
	}
}

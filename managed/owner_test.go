// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// fakeAPIServer answers each read with the same item or the same error, and counts the reads.
type fakeAPIServer struct {
	client.Reader
	item  *lsv1alpha1.DeployItem
	err   error
	reads int
}

func (s *fakeAPIServer) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s.reads++
	if s.item != nil {
		s.item.DeepCopyInto(obj.(*lsv1alpha1.DeployItem))
	}
	return s.err
}

func TestFindOwner(t *testing.T) {
	resource := lsv1alpha1.Resource("deployitems")
	unserved := apierrors.NewGenericServerResponse(404, "get", resource, "", "404 page not found", 0, true)
	item := func(uid string, deleting bool) *lsv1alpha1.DeployItem {
		out := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "former"}}
		if out.UID = "1"; uid != "" {
			out.UID = "2"
		}
		if deleting {
			out.DeletionTimestamp, out.Finalizers = &metav1.Time{Time: startTime}, []string{"f"}
		}
		return out
	}
	for name, tc := range map[string]struct {
		cached, live *lsv1alpha1.DeployItem
		err          error
		want         apply.OwnerState
		reads        int
	}{
		"an item in the cache exists, without a request":           {cached: item("", false), want: apply.OwnerExists},
		"an item in the cache is being deleted, without a request": {cached: item("", true), want: apply.OwnerDeleting},
		"an item that only the API server knows exists":            {live: item("", false), want: apply.OwnerExists, reads: 1},
		"an item that only the API server knows is being deleted":  {live: item("", true), want: apply.OwnerDeleting, reads: 1},
		"an item that the API server does not know is gone":        {err: apierrors.NewNotFound(resource, "former"), want: apply.OwnerGone, reads: 1},
		"an item that was created again is gone":                   {cached: item("2", false), live: item("2", false), want: apply.OwnerGone, reads: 1},
		"an item that only the cache shows as another one exists":  {cached: item("2", false), live: item("", false), want: apply.OwnerExists, reads: 1},
		"an item that may not be read is unknown":                  {err: apierrors.NewForbidden(resource, "former", nil), want: apply.OwnerUnknown, reads: 1},
		"an item of a kind that is not served is unknown":          {err: unserved, want: apply.OwnerUnknown, reads: 1},
		"an item is unknown if the API server does not respond":    {err: errors.New("connection refused"), want: apply.OwnerUnknown, reads: 1},
	} {
		t.Run(name+" [F92]", func(t *testing.T) {
			w := newTestEnv(t)
			deleting := tc.cached != nil && tc.cached.DeletionTimestamp != nil
			if tc.cached != nil {
				if err := w.items.Create(t.Context(), tc.cached); err != nil {
					t.Fatal(err)
				}
			}
			if deleting {
				if err := w.items.Delete(t.Context(), tc.cached); err != nil {
					t.Fatal(err)
				}
			}
			server := &fakeAPIServer{item: tc.live, err: tc.err}
			w.manager.rt.Landscaper = fakeLandscaper{client: w.items, reader: server}
			got := w.manager.findOwner(t.Context(), ownership.Owner{UID: "1", Landscape: "landscape", Namespace: "ns", Name: "former"})
			if got != tc.want || server.reads != tc.reads {
				t.Errorf("want %q after %d reads, got %q after %d", tc.want, tc.reads, got, server.reads)
			}
		})
	}
}

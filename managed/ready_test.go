// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/observe"
)

// TestStatelessKindsAreAlwaysReady covers the kinds whose objects are never read. It checks that such objects are
// always ready.
func TestStatelessKindsAreAlwaysReady(t *testing.T) {
	for kind := range stateless {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetGroupVersionKind(kind.WithVersion("v1"))
		if result := readiness.CheckObject(obj); !result.IsReady() {
			t.Errorf("%s is not ready as soon as it exists: %s", kind, result.Message)
		}
	}
}

// createWatched creates a ConfigMap and watches its namespace.
func (w *testEnv) createWatched() *corev1.ConfigMap {
	w.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	if err := w.cluster.Create(w.Context(), cm); err != nil {
		w.Fatal(err)
	}
	if _, err := w.cluster.watcher.Watch(w.Context(), configMaps, "ns"); err != nil {
		w.Fatal(err)
	}
	return cm
}

// TestReadRejectsOutdatedResponses ensures that Read returns an error if the response is older than the last write of
// the item.
func TestReadRejectsOutdatedResponses(t *testing.T) {
	w := newTestEnv(t)
	cm := w.createWatched()
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}
	for _, tc := range []struct {
		written string
		behind  bool
	}{{"", false}, {cm.ResourceVersion, false}, {"7" + cm.ResourceVersion, true}} {
		w.cluster.watcher.SetBaseline(w.item.UID, []observe.BaselineObject{
			{Object: observe.Object{Resource: configMaps, NamespacedName: name}, UID: cm.UID, ResourceVersion: tc.written},
		})
		live, err := w.cluster.Read(t.Context(), ref)
		if behind := err != nil && strings.Contains(err.Error(), "the target lags behind"); behind != tc.behind || (live == nil) != tc.behind {
			t.Errorf("written %q, read %q: got %v, %v, want an error: %t", tc.written, cm.ResourceVersion, live, err, tc.behind)
		}
	}
}

// TestReadAcceptsAConcurrentChange ensures that Read accepts a response although a watch reports a later change before
// Read compares the two.
func TestReadAcceptsAConcurrentChange(t *testing.T) {
	w := newTestEnv(t)
	cm := w.createWatched()
	plain := w.cluster.Client.Client.(client.WithWatch)
	w.cluster.Client.Client = interceptor.NewClient(plain, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			w.cluster.watcher.SetBaseline(w.item.UID, []observe.BaselineObject{
				{Object: observe.Object{Resource: configMaps, NamespacedName: key}, UID: cm.UID, ResourceVersion: "7" + cm.ResourceVersion},
			})
			return err
		},
	})
	live, err := w.cluster.Read(t.Context(), apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"})
	if err != nil || live.GetResourceVersion() != cm.ResourceVersion {
		t.Errorf("got %v, %v, want version %s: the change is younger than the request", live, err, cm.ResourceVersion)
	}
}

// TestReadRecognizesRejectedCredentials ensures that ConvertApplyError recognizes rejected credentials also if an
// object was only read.
func TestReadRecognizesRejectedCredentials(t *testing.T) {
	w := newTestEnv(t)
	w.cluster.Client.Client = interceptor.NewClient(w.cluster.Client.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewUnauthorized("Unauthorized")
		},
	})
	r := w.begin(false)
	for i, ends := range []bool{false, true} {
		_, err := w.cluster.Read(t.Context(), apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"})
		if err == nil || contract.HasUnrecoverableCode(contract.ErrorCodes(r.ConvertApplyError(err))) != ends {
			t.Errorf("rejection %d: %v, want the end of the job: %t", i+1, err, ends)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// onlyIn returns interceptor functions that forbid listing objects except in the given namespace.
func onlyIn(namespace string) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if (&client.ListOptions{}).ApplyOptions(options).Namespace != namespace {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
		}
		return c.List(ctx, list, options...)
	}}
}

// requestOf returns the request that a handler receives from Plan. The item anna has the children one and two, but two
// has lost its label.
func requestOf(t *testing.T, funcs interceptor.Funcs, more ...client.Object) *SyncRequest {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(lsv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	earlier := anna
	earlier.UID = "anna-1"
	bare := child(ownership.Owner{}, "x", "two", "")
	bare.SetLabels(nil)
	objects := append([]client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: anna.Landscape}},
		child(anna, "x", "one", ""), bare, child(earlier, "x", "before", ""), child(bert, "x", "theirs", ""),
	}, more...)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: anna.Namespace, Name: anna.Name, UID: anna.UID}}
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	inventory := apply.Inventory{Cluster: &apply.Cluster{UID: anna.Landscape}, Entries: []apply.Entry{entry("two")}}
	if err := (&providerStatus{inventory: inventory}).store(di); err != nil {
		t.Fatal(err)
	}
	var got *SyncRequest
	enough := errors.New("enough")
	_, err := Plan(t.Context(), c, c, HandlerFunc(func(_ context.Context, req *SyncRequest) (*SyncResponse, error) {
		got = req
		return nil, enough
	}), Options{Children: []ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}}}, di)
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return got
}

func TestPlanRequest(t *testing.T) {
	for name, funcs := range map[string]interceptor.Funcs{"everywhere": {}, "where listing is allowed": onlyIn("x")} {
		t.Run("has the children of a run "+name+" [F31]", func(t *testing.T) {
			var names []string
			for _, one := range requestOf(t, funcs).Children {
				names = append(names, one.Name())
			}
			if diff := cmp.Diff([]string{"before", "one", "two"}, names); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("has the Target without credentials [F31]", func(t *testing.T) {
		target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: anna.Namespace, Name: "cluster", Labels: map[string]string{"a": "b"}}}
		target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"kubeconfig":"secret"}`))
		got := requestOf(t, interceptor.Funcs{}, target).Target
		if got.Labels["a"] != "b" || got.Spec.Configuration != nil {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("names a Target that does not exist [F31]", func(t *testing.T) {
		want := types.NamespacedName{Namespace: anna.Namespace, Name: "cluster"}
		if got := client.ObjectKeyFromObject(requestOf(t, interceptor.Funcs{}).Target); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

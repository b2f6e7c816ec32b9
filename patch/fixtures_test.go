// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// newItem returns a DeployItem as the API server returns it before a deployer has processed it.
func newItem(change ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: "7"},
		Spec: lsv1alpha1.DeployItemSpec{
			Type:          "deployerkit.dev/mock",
			Configuration: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","foo":{"a/b":1},"kind":"C","list":[{"x":1}]}`)},
		},
	}
	for _, f := range change {
		f(di)
	}
	return di
}

// newObject returns an unstructured object with the given members.
func newObject(t *testing.T, members string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal([]byte(members), &u.Object); err != nil {
		t.Fatalf("bad fixture: %v", err)
	}
	u.SetAPIVersion("example.org/v1")
	u.SetKind("Thing")
	u.SetName("web")
	u.SetNamespace("default")
	u.SetResourceVersion("7")
	return u
}

// calls counts the requests to the API server and stores their bodies.
type calls struct {
	main, status atomic.Int32
	bodies       []string
	types        []types.PatchType
	// If mainErr is set, writes of the main resource are not sent and fail with mainErr. If statusErr is set, writes of
	// the status are not sent and fail with statusErr.
	mainErr, statusErr error
}

func (c *calls) recordPatch(t *testing.T, obj client.Object, p client.Patch) {
	t.Helper()
	data, err := p.Data(obj)
	if err != nil {
		t.Errorf("patch data: %v", err)
	}
	c.bodies = append(c.bodies, string(data))
	c.types = append(c.types, p.Type())
}

// newClient returns a fake client with the objects, and a counter of its requests.
func newClient(t *testing.T, objects ...client.Object) (client.Client, *calls) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := lsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatalf("scheme: %v", err)
	}
	count := &calls{}
	return fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(objects...).WithStatusSubresource(&lsv1alpha1.DeployItem{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				count.main.Add(1)
				count.recordPatch(t, obj, p)
				if count.mainErr != nil {
					return count.mainErr
				}
				return c.Patch(ctx, obj, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				count.status.Add(1)
				count.recordPatch(t, obj, p)
				if count.statusErr != nil {
					return count.statusErr
				}
				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			},
		}).Build(), count
}

var itemResource = schema.GroupResource{Group: "landscaper.gardener.cloud", Resource: "deployitems"}

// newStoredItem returns a client with one item, a counter of its requests, and the stored item.
func newStoredItem(t *testing.T, change ...func(*lsv1alpha1.DeployItem)) (client.Client, *calls, *lsv1alpha1.DeployItem) {
	t.Helper()
	c, count := newClient(t, newItem(change...))
	di := &lsv1alpha1.DeployItem{}
	read(t, c, di)
	return c, count, di
}

func read(t *testing.T, c client.Client, di *lsv1alpha1.DeployItem) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(newItem()), di); err != nil {
		t.Fatalf("get: %v", err)
	}
}

func assertUntouched(t *testing.T, before, after client.Object) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the input was changed (-before +after):\n%s", diff)
	}
}

// asUnstructured returns the raw body of the item as the API server stores it.
func asUnstructured(t *testing.T, di *lsv1alpha1.DeployItem) *unstructured.Unstructured {
	t.Helper()
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(di)
	if err != nil {
		t.Fatalf("convert: %v", err)
	}
	u := &unstructured.Unstructured{Object: body}
	u.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))
	return u
}

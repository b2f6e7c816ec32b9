// SPDX-License-Identifier: Apache-2.0

package itempatch_test

import (
	"context"
	"encoding/json"
	"maps"
	"sync/atomic"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
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

// newObject returns an unstructured object with the members of the given JSON object.
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

// requestLog contains the number and the bodies of the patches that the fake API has received.
type requestLog struct {
	main, status atomic.Int32
	bodies       []string
	types        []types.PatchType
	// mainErr is returned for patches of the main resource, and statusErr for patches of the status. A patch for which
	// an error is set is not executed.
	mainErr, statusErr error
}

func (c *requestLog) record(t *testing.T, obj client.Object, p client.Patch) {
	t.Helper()
	data, err := p.Data(obj)
	if err != nil {
		t.Errorf("patch data: %v", err)
	}
	c.bodies = append(c.bodies, string(data))
	c.types = append(c.types, p.Type())
}

// newClient returns a client of a fake API that contains the given objects. It also returns the calls that the fake API
// records.
func newClient(t *testing.T, objects ...client.Object) (client.Client, *requestLog) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := lsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatalf("scheme: %v", err)
	}
	count := &requestLog{}
	return fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(objects...).WithStatusSubresource(&lsv1alpha1.DeployItem{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				count.main.Add(1)
				count.record(t, obj, p)
				if count.mainErr != nil {
					return count.mainErr
				}
				return c.Patch(ctx, obj, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				count.status.Add(1)
				count.record(t, obj, p)
				if count.statusErr != nil {
					return count.statusErr
				}
				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			},
		}).Build(), count
}

func mustDiff(t *testing.T, base, wanted client.Object) itempatch.Changes {
	t.Helper()
	changes, err := itempatch.Diff(base, wanted)
	if err != nil {
		t.Fatalf("Diff: %v", err)
	}
	return changes
}

func expectJSON(t *testing.T, what, want string, got []byte) {
	t.Helper()
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// encodeMetadata and encodeStatus return the bodies that are sent to the two endpoints.
func encodeMetadata(t *testing.T, changes itempatch.Changes) []byte {
	t.Helper()
	if changes.Metadata == nil {
		return nil
	}
	metadata := map[string]any{"resourceVersion": changes.Version}
	maps.Copy(metadata, changes.Metadata)
	return marshal(t, map[string]any{"metadata": metadata})
}

func encodeStatus(t *testing.T, changes itempatch.Changes) []byte {
	t.Helper()
	if changes.Status == nil {
		return nil
	}
	return marshal(t, map[string]any{"metadata": map[string]any{"resourceVersion": changes.Version}, "status": changes.Status})
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return data
}

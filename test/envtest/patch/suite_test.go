// SPDX-License-Identifier: Apache-2.0

// Package patch_test tests package patch with a real API server and counts every request.
package patch_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/patch"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

func TestPatch(t *testing.T) {
	world.Run(t, "patch")
}

// The two kinds differ only in the status. In Apart, the status is a subresource. In Whole, it is a part of the object.
const (
	apart = "Apart"
	whole = "Whole"
)

var (
	cfg  *rest.Config
	wire = &recorder{}
	c    client.Client // client whose requests go through the variable `wire`
)

var _ = BeforeSuite(func(ctx SpecContext) {
	crds := append(controlplane.CRDs(), newDefinition(apart, true), newDefinition(whole, false))
	cp := world.StartControlPlane(ctx, controlplane.Options{CRDs: crds})
	cfg = cp.Config
	c = newClient(wire.wrap(cfg))
})

func newClient(cfg *rest.Config) client.Client { return world.NewClient(GinkgoTB(), cfg) }

// newDefinition returns the definition of a kind. In this kind, both the spec and the status contain an integer n, a
// nullable text, a list and a map without a schema.
func newDefinition(kind string, subresource bool) *apiextv1.CustomResourceDefinition {
	preserve := true
	part := apiextv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextv1.JSONSchemaProps{
		"n":    {Type: "integer"},
		"text": {Type: "string", Nullable: true},
		"list": {Type: "array", Items: &apiextv1.JSONSchemaPropsOrArray{Schema: &apiextv1.JSONSchemaProps{Type: "string"}}},
		"free": {Type: "object", XPreserveUnknownFields: &preserve},
		"items": {Type: "array", Items: &apiextv1.JSONSchemaPropsOrArray{Schema: &apiextv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: &preserve,
		}}},
	}}
	version := apiextv1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextv1.CustomResourceValidation{OpenAPIV3Schema: &apiextv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextv1.JSONSchemaProps{"spec": part, "status": part},
		}},
	}
	plural := map[string]string{apart: "aparts", whole: "wholes"}[kind]
	if subresource {
		version.Subresources = &apiextv1.CustomResourceSubresources{Status: &apiextv1.CustomResourceSubresourceStatus{}}
	}
	return &apiextv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".patch.example.org"},
		Spec: apiextv1.CustomResourceDefinitionSpec{
			Group: "patch.example.org", Scope: apiextv1.NamespaceScoped,
			Names:    apiextv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: plural[:len(plural)-1]},
			Versions: []apiextv1.CustomResourceDefinitionVersion{version},
		},
	}
}

// create creates an object with a spec and a status.
func create(ctx context.Context, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "default", "generateName": "t-", "labels": map[string]any{"old": "1"}},
		"spec":     map[string]any{"n": int64(1), "text": "t", "list": []any{"a", "b"}},
		"status":   map[string]any{"n": int64(1)},
	}}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "patch.example.org", Version: "v1", Kind: kind})
	direct := newClient(cfg)
	Expect(direct.Create(ctx, obj)).To(Succeed())
	if kind == apart {
		Expect(direct.Status().Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"n":1}}`)))).To(Succeed())
	}
	wire.reset()
	return obj
}

// read returns the stored object.
func read(ctx context.Context, obj *unstructured.Unstructured) map[string]any {
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(obj.GroupVersionKind())
	Expect(newClient(cfg).Get(ctx, client.ObjectKeyFromObject(obj), stored)).To(Succeed())
	return stored.Object
}

// apply requires that the patch succeeds, and that obj then equals the stored object.
func apply(ctx context.Context, p *patch.Patch, obj *unstructured.Unstructured, opts ...patch.Option) patch.Result {
	result, err := p.Apply(ctx, c, obj, opts...)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	if !result.Gone {
		ExpectWithOffset(1, obj.Object).To(Equal(read(ctx, obj)))
		ExpectWithOffset(1, result.Body).To(Equal(obj.Object))
	}
	return result
}

// request describes a write that was sent to the API server.
type request struct{ Subresource, Type string }

// recorder records the writes that are sent.
type recorder struct {
	counter faultnet.Counter

	mu     sync.Mutex
	writes []request
	bodies []string
}

func (r *recorder) wrap(cfg *rest.Config) *rest.Config {
	r.counter.SetInjector(func(req *http.Request) (*http.Response, error) {
		what, ok := faultnet.RequestOf(req)
		if !ok || what.Verb != "patch" {
			return nil, nil
		}
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.writes = append(r.writes, request{what.Subresource, req.Header.Get("Content-Type")})
		r.bodies = append(r.bodies, string(data))
		return nil, nil
	})
	return r.counter.Wrap(cfg)
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes, r.bodies = nil, nil
}

func (r *recorder) getRequests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request{}, r.writes...)
}

// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// forbidOutside returns interceptor functions that forbid listing objects except in the given namespace.
func forbidOutside(namespace string) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if (&client.ListOptions{}).ApplyOptions(options).Namespace != namespace {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
		}
		return c.List(ctx, list, options...)
	}}
}

// getRequest returns the request that a handler receives from Plan. The item anna has the children one and two, but two
// has lost its label.
func getRequest(t *testing.T, funcs interceptor.Funcs, more ...client.Object) *SyncRequest {
	t.Helper()
	p := planning{t: t, funcs: funcs, objects: more, entries: []apply.Entry{newEntry("two")}}
	got, err := p.request()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// planning is a call of Plan for the item anna.
type planning struct {
	t       *testing.T
	funcs   interceptor.Funcs
	mapper  meta.RESTMapper // nil if the cluster serves all kinds
	objects []client.Object
	entries []apply.Entry
}

// request calls Plan, and returns the request that the handler receives. It returns an error if Plan does not call the
// handler.
func (p *planning) request() (*SyncRequest, error) {
	t := p.t
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(lsv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	earlier := anna
	earlier.UID = "anna-1"
	bare := newChild(ownership.Owner{}, "x", "two", "")
	bare.SetLabels(nil)
	objects := append([]client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: anna.Landscape}},
		newChild(anna, "x", "one", ""), bare, newChild(earlier, "x", "before", ""), newChild(bert, "x", "theirs", ""),
	}, p.objects...)
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(p.mapper).WithObjects(objects...).WithInterceptorFuncs(p.funcs).Build()
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: anna.Namespace, Name: anna.Name, UID: anna.UID}}
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	inventory := apply.Inventory{Cluster: &apply.ClusterID{UID: anna.Landscape}, Entries: p.entries}
	if err := (&providerStatus{inventory: inventory}).store(di); err != nil {
		t.Fatal(err)
	}
	var got *SyncRequest
	enough := errors.New("enough")
	_, err := Plan(t.Context(), c, c, HandlerFunc(func(_ context.Context, req *SyncRequest) (*SyncResponse, error) {
		got = req
		return nil, enough
	}), Options{Children: []ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}}}, di)
	if errors.Is(err, enough) {
		return got, nil
	}
	return got, err
}

func TestPlanRequest(t *testing.T) {
	for name, funcs := range map[string]interceptor.Funcs{"everywhere": {}, "where listing is allowed": forbidOutside("x")} {
		t.Run("the request of a plan contains the children of a run "+name+" [F31]", func(t *testing.T) {
			var names []string
			for _, one := range getRequest(t, funcs).Children {
				names = append(names, one.Name())
			}
			if diff := cmp.Diff([]string{"before", "one", "two"}, names); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("the request of a plan contains the Target without credentials [F31]", func(t *testing.T) {
		target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: anna.Namespace, Name: "cluster", Labels: map[string]string{"a": "b"}}}
		target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"kubeconfig":"secret"}`))
		got := getRequest(t, interceptor.Funcs{}, target).Target
		if got.Labels["a"] != "b" || got.Spec.Configuration != nil {
			t.Errorf("target = %+v, want the labels without the configuration", got)
		}
	})
	t.Run("a plan reports a Target that does not exist [F31]", func(t *testing.T) {
		want := types.NamespacedName{Namespace: anna.Namespace, Name: "cluster"}
		if got := client.ObjectKeyFromObject(getRequest(t, interceptor.Funcs{}).Target); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// incomplete is a RESTMapper whose discovery of the core group is incomplete.
type incomplete struct{ meta.RESTMapper }

func (incomplete) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	if kind.Kind == "ConfigMap" {
		return nil, errIncomplete
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

var errIncomplete = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{corev1.SchemeGroupVersion: errors.New("down")}}

// TestPlanWithUnservedKinds checks that a handler does not see fewer children because the target does not serve their
// kind at the moment.
func TestPlanWithUnservedKinds(t *testing.T) {
	configMaps := corev1.Resource("configmaps")
	proxy := apierrors.NewGenericServerResponse(404, "get", configMaps, "two", "404 page not found", 0, true)
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, SearchedVersions: []string{"v1"}}
	two := []apply.Entry{newEntry("two")}
	aggregating := meta.NewDefaultRESTMapper(nil)
	aggregating.Add(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, meta.RESTScopeRoot)
	for name, tc := range map[string]struct {
		list, get error
		mapper    meta.RESTMapper
		entries   []apply.Entry
		want      string // the error; empty if the handler is called
		children  int
	}{
		"fails if the discovery is incomplete, although no children are known": {list: errIncomplete, mapper: incomplete{}, want: "does not serve ConfigMap: unable to retrieve the complete list of server APIs: v1: down"},
		"fails if the discovery is incomplete":                                 {list: errIncomplete, mapper: incomplete{}, entries: two, want: "does not serve ConfigMap"},
		"fails if an API service does not respond":                             {list: noMatch, mapper: aggregating, entries: two, want: "does not serve ConfigMap: the APIService v1. exists"},
		"fails if a proxy responds to a list":                                  {list: proxy, mapper: incomplete{}, want: "does not serve ConfigMap"},
		"fails if a proxy responds to a read of a child":                       {get: proxy, mapper: incomplete{}, entries: two, want: "does not serve ConfigMap"},
		"shows no children of a kind that is proved not to exist":              {list: noMatch, mapper: meta.NewDefaultRESTMapper(nil), entries: two},
		"shows no child that is proved not to exist":                           {get: apierrors.NewNotFound(configMaps, "two"), entries: two, children: 2},
		"shows no children of a kind that a complete discovery lacks":          {list: noMatch, mapper: meta.NewDefaultRESTMapper(nil)},
	} {
		t.Run("a plan "+name+" [F70]", func(t *testing.T) {
			p := planning{t: t, mapper: tc.mapper, entries: tc.entries, funcs: interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if services, is := list.(*metav1.PartialObjectMetadataList); is {
						services.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "v1."}}}
						return nil
					}
					if tc.list != nil {
						return tc.list
					}
					return c.List(ctx, list, options...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
					if tc.get != nil && key.Name == "two" {
						return tc.get
					}
					return c.Get(ctx, key, obj, options...)
				},
			}}
			req, err := p.request()
			switch {
			case tc.want != "" && (req != nil || err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("want %q, got %v, request %+v", tc.want, err, req)
			case tc.want == "" && (err != nil || len(req.Children) != tc.children):
				t.Errorf("want %d children, got %v, %+v", tc.children, err, req)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package absence

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fakeCluster is a cluster with CustomResourceDefinitions and APIServices. It is its own client and RESTMapper.
type fakeCluster struct {
	meta.RESTMapper // the kinds that are served
	client.Reader

	incomplete  error             // the error of a lookup of the kind Lamp
	definitions map[string]string // the kinds of the definitions, by name
	services    map[string]string // the value of the label automanaged, by name
	serves      map[schema.GroupVersion]bool
	forbidden   string // the kind that must not be listed
	down        error  // the error of a discovery

	discovery  uint64
	lists, got int
}

func newFakeCluster(served ...schema.GroupVersionKind) *fakeCluster {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.org", Version: "v2"}})
	for _, gvk := range append(served, definitionKind, serviceKind) {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	return &fakeCluster{RESTMapper: mapper}
}

func (c *fakeCluster) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind == lampKind && c.incomplete != nil {
		return nil, c.incomplete
	}
	return c.RESTMapper.RESTMapping(kind, versions...)
}

func (c *fakeCluster) Refresh(context.Context) (uint64, error)   { return c.discovery, c.down }
func (c *fakeCluster) IsServed(version schema.GroupVersion) bool { return c.serves[version] }
func (c *fakeCluster) CanRead(resource schema.GroupVersionResource) bool {
	return resource.Resource != "lamps"
}

func (c *fakeCluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	c.lists++
	all := list.(*metav1.PartialObjectMetadataList)
	kind := strings.TrimSuffix(all.Kind, "List")
	if c.forbidden == kind {
		return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no right"))
	}
	if kind == serviceKind.Kind {
		for name, managed := range c.services {
			one := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
			if managed != "" {
				one.Labels["kube-aggregator.kubernetes.io/automanaged"] = managed
			}
			all.Items = append(all.Items, one)
		}
		return nil
	}
	for name := range c.definitions {
		all.Items = append(all.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return nil
}

func (c *fakeCluster) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.got++
	live := obj.(*unstructured.Unstructured)
	return unstructured.SetNestedField(live.Object, c.definitions[key.Name], "spec", "names", "kind")
}

func newLampKind(version string) schema.GroupVersionKind { return lampKind.WithVersion(version) }

func TestProverAddsReason(t *testing.T) {
	fan := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Fan"}
	for name, tc := range map[string]struct {
		served []schema.GroupVersionKind
		change func(*fakeCluster)
		want   KindState
		reason string
	}{
		"a kind without definition and APIService is gone [F70]": {want: KindGone},
		"a kind in another version is served [F70]":              {served: []schema.GroupVersionKind{newLampKind("v2")}, want: KindServed},
		"a kind in an incomplete group is not served [F70]": {change: func(c *fakeCluster) {
			c.incomplete = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "example.org", Version: "v1"}: errors.New("stale")}}
		}, want: KindNotServed, reason: "example.org/v1: stale"},
		"a kind with a definition is not served [F70]":                              {change: func(c *fakeCluster) { c.definitions = map[string]string{"lamps.example.org": "Lamp"} }, want: KindNotServed, reason: "lamps.example.org exists"},
		"a kind whose definition has an unusual plural is not served [F70]":         {change: func(c *fakeCluster) { c.definitions = map[string]string{"lights.example.org": "Lamp"} }, want: KindNotServed, reason: "lights.example.org exists"},
		"a kind is gone although its group has a definition that is served [F70]":   {served: []schema.GroupVersionKind{fan}, change: func(c *fakeCluster) { c.definitions = map[string]string{"fans.example.org": "Fan"} }, want: KindGone},
		"a kind is gone although its group has a definition that is unserved [F70]": {change: func(c *fakeCluster) { c.definitions = map[string]string{"fans.example.org": "Fan"} }, want: KindGone},
		"a kind is gone although a group with a longer name has a definition [F70]": {change: func(c *fakeCluster) { c.definitions = map[string]string{"lamps.more.example.org": "Lamp"} }, want: KindGone},
		"a kind in a group with an APIService is not served [F70]":                  {change: func(c *fakeCluster) { c.services = map[string]string{"v1.example.org": ""} }, want: KindNotServed, reason: "v1.example.org exists"},
		"a kind is gone if the discovery contains the versions of its group [F70]": {change: func(c *fakeCluster) {
			c.services = map[string]string{"v1.example.org": ""}
			c.serves = map[schema.GroupVersion]bool{{Group: "example.org", Version: "v1"}: true}
		}, want: KindGone},
		"a kind is gone although the API server registers its group itself [F70]": {change: func(c *fakeCluster) { c.services = map[string]string{"v1.example.org": "true"} }, want: KindGone},
		"a kind is not proved gone if definitions must not be listed [F70]":       {change: func(c *fakeCluster) { c.forbidden = definitionKind.Kind }, want: KindForbidden, reason: "no right"},
		"a kind is not proved gone if APIServices must not be listed [F70]":       {change: func(c *fakeCluster) { c.forbidden = serviceKind.Kind }, want: KindForbidden, reason: "no right"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeCluster(tc.served...)
			if tc.change != nil {
				tc.change(c)
			}
			cause := &meta.NoKindMatchError{GroupKind: lampKind, SearchedVersions: []string{"v1"}}
			kind, ok := errors.AsType[*KindError](NewProver(c, c).AddKindError(t.Context(), lampKind, cause))
			if !ok || kind.State != tc.want || !strings.Contains(kind.Reason, tc.reason) || !errors.Is(kind, cause) {
				t.Errorf("got %+v, want the state %s with the reason %q", kind, tc.want, tc.reason)
			}
			if tc.want == KindServed && (kind.Version != "v2" || !kind.Unsupported) {
				t.Errorf("got %+v, want the version v2, which cannot be read", kind)
			}
		})
	}
}

func TestProverLimitsRequests(t *testing.T) {
	cause := &meta.NoKindMatchError{GroupKind: lampKind, SearchedVersions: []string{"v1"}}
	t.Run("the requests of a proof are repeated only after another discovery [F70]", func(t *testing.T) {
		c := newFakeCluster()
		p := NewProver(c, c)
		for range 3 {
			_ = p.AddKindError(t.Context(), lampKind, cause)
		}
		if c.lists != 2 {
			t.Errorf("got %d lists, want 2", c.lists)
		}
		c.definitions = map[string]string{"lamps.example.org": "Lamp"}
		c.discovery++
		if kind, _ := errors.AsType[*KindError](p.AddKindError(t.Context(), lampKind, cause)); kind.State != KindNotServed {
			t.Errorf("got %+v after another discovery, want the state %s", kind, KindNotServed)
		}
	})
	t.Run("a proof reads only a few definitions [F70]", func(t *testing.T) {
		c := newFakeCluster()
		c.definitions = map[string]string{}
		for i := range 2 * maxDefinitions {
			c.definitions[strings.Repeat("x", i+1)+".example.org"] = "Other"
		}
		kind, _ := errors.AsType[*KindError](NewProver(c, c).AddKindError(t.Context(), lampKind, cause))
		if kind.State != KindNotServed || c.got != maxDefinitions {
			t.Errorf("got %+v after reading %d definitions, want the state %s after %d", kind, c.got, KindNotServed, maxDefinitions)
		}
	})
	t.Run("an unrelated error needs no proof [F70]", func(t *testing.T) {
		c := newFakeCluster()
		for _, err := range []error{nil, apierrors.NewNotFound(lamps, "a"), errors.New("dial"), &KindError{State: KindGone}} {
			if got := NewProver(c, c).AddKindError(t.Context(), lampKind, err); !errors.Is(got, err) || c.lists != 0 {
				t.Errorf("got %v after %d lists, want %v", got, c.lists, err)
			}
		}
	})
	t.Run("the write of an object needs no proof [F71]", func(t *testing.T) {
		c := newFakeCluster()
		kind, _ := errors.AsType[*KindError](NewProver(c, c).AddKindErrorFromDiscovery(t.Context(), lampKind, cause))
		if kind == nil || kind.State != KindNotServed || c.lists != 0 {
			t.Errorf("got %+v after %d lists, want the state %s", kind, c.lists, KindNotServed)
		}
	})
	t.Run("nothing is proved if the discovery fails [F70]", func(t *testing.T) {
		c := newFakeCluster()
		c.down = errors.New("down")
		if got := NewProver(c, c).AddKindError(t.Context(), lampKind, cause); !errors.Is(got, c.down) || ClassifyError(Object{Kind: lampKind, Name: "a"}, got) != MeaningUnrelated {
			t.Errorf("got %v, want %v", got, c.down)
		}
	})
}

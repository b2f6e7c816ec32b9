// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
)

// lookups is a RESTMapper that counts lookups of kinds.
type lookups struct {
	meta.RESTMapper

	n int
}

func (l *lookups) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	l.n++
	return l.RESTMapper.RESTMapping(gk, versions...)
}

func TestRemembering(t *testing.T) {
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	under := &lookups{RESTMapper: known}
	m := &remembering{RESTMapper: under}
	for range 3 {
		mapping, err := m.RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
		if err != nil || mapping.Resource.Resource != "configmaps" || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			t.Fatal(mapping, err)
		}
		mapping.Resource.Resource = "changed" // must change only the caller's copy
	}
	if under.n != 1 {
		t.Errorf("%d lookups of a known kind, want 1", under.n)
	}
	for range 2 {
		if _, err := m.RESTMapping(schema.GroupKind{Kind: "Other"}, "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("want no match, got %v", err)
		}
	}
	if under.n != 3 {
		t.Errorf("%d lookups, want each lookup of an unknown kind", under.n-1)
	}
}

func TestStatusSubresource(t *testing.T) {
	widgets := func(names ...string) []metav1.APIResource {
		var out []metav1.APIResource
		for _, name := range names {
			out = append(out, metav1.APIResource{Name: name, Kind: "Widget"})
		}
		return out
	}
	m := &mapper{clk: clock.RealClock{}, known: newRemembering([]*restmapper.APIGroupResources{{
		Group: metav1.APIGroup{Name: "example.org", Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}, {Version: "v2"}}},
		VersionedResources: map[string][]metav1.APIResource{
			"v1": widgets("widgets", "widgets/scale"), "v2": widgets("widgets/status", "widgets"),
		},
	}})}
	for version, want := range map[string]bool{"v1": false, "v2": true, "v3": false} {
		t.Run("is known from the discovery of each version [F101]", func(t *testing.T) {
			gvk := schema.GroupVersionKind{Group: "example.org", Version: version, Kind: "Widget"}
			if got := m.HasStatusSubresource(gvk); got != want {
				t.Errorf("%s has a status subresource: %v, want %v", gvk, got, want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

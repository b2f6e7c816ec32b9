// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// countingMapper counts the calls of RESTMapping.
type countingMapper struct {
	meta.RESTMapper

	calls int
}

func (m *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.calls++
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// TestCachingMapper checks that only successful results for a single version are cached.
func TestCachingMapper(t *testing.T) {
	group := lsv1alpha1.SchemeGroupVersion
	known := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
	known.Add(group.WithKind("DeployItem"), meta.RESTScopeNamespace)
	cases := map[string]struct {
		kind      string
		versions  []string
		wantCalls int
		wantErr   bool
	}{
		"a known kind is looked up once":          {kind: "DeployItem", versions: []string{group.Version}, wantCalls: 1},
		"an unknown kind is looked up each time":  {kind: "Other", versions: []string{group.Version}, wantCalls: 2, wantErr: true},
		"a list of versions is looked up":         {kind: "DeployItem", versions: []string{group.Version, "v1"}, wantCalls: 2},
		"a kind of any version is also looked up": {kind: "DeployItem", wantCalls: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inner := &countingMapper{RESTMapper: known}
			mapper := &cachingMapper{RESTMapper: inner}
			for range 2 {
				mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group.Group, Kind: tc.kind}, tc.versions...)
				if (err != nil) != tc.wantErr {
					t.Fatalf("RESTMapping() = %v, %v", mapping, err)
				}
				if err == nil && mapping.Resource.Resource != "deployitems" {
					t.Errorf("RESTMapping() = %v, want the resource deployitems", mapping.Resource)
				}
			}
			if inner.calls != tc.wantCalls {
				t.Errorf("%d calls, want %d", inner.calls, tc.wantCalls)
			}
			if _, err := mapper.RESTMapping(schema.GroupKind{Group: group.Group, Kind: tc.kind}, "v2"); err == nil {
				t.Error("the mapping of another version is known")
			}
		})
	}
}

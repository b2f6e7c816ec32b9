// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mapped is a client with its own RESTMapper.
type mapped struct {
	client.Client
	mapper meta.RESTMapper
}

func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

// counted is a RESTMapper of a comparable type. If the values in two such mappers are not comparable, comparing the
// mappers panics.
type counted struct {
	meta.RESTMapper
	value any
}

func TestPatchForbiddenCacheIsLimited(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for i := range 10 * maxPatchForbidden {
		patchForbiddenCache.Add(newPatchForbidden(mapped{mapper: counted{value: i}}, kind, ""), nil)
	}
	if got := patchForbiddenCache.Len(); got != maxPatchForbidden {
		t.Errorf("%d mappers are kept, want %d", got, maxPatchForbidden)
	}
}

func TestIncomparableRESTMappers(t *testing.T) {
	ban := newPatchForbidden(mapped{mapper: counted{value: []int{1}}}, schema.GroupVersionKind{}, "")
	if patchForbiddenCache.Add(ban, nil); ban.cluster != nil {
		t.Errorf("the ban names %v, which cannot be a key", ban.cluster)
	}
}

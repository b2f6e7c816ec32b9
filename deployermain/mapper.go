// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// cachingMapper is a RESTMapper that caches the results of RESTMapping. A cache that is limited to a namespace calls
// RESTMapping in each read, and the mapper of controller-runtime then compares the mappings of all API groups.
// Entries are never removed. There is one for each kind that is read, so the cache is small. If the scope or the resource
// name of a kind changes, the process must be restarted.
type cachingMapper struct {
	meta.RESTMapper

	mappings sync.Map // from schema.GroupVersionKind to *meta.RESTMapping
}

// newMapper returns the mapper of a manager.
func newMapper(config *rest.Config, c *http.Client) (meta.RESTMapper, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(config, c)
	if err != nil {
		return nil, err
	}
	return &cachingMapper{RESTMapper: mapper}, nil
}

// RESTMapping implements meta.RESTMapper. It caches only successful results for a single version.
func (m *cachingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	key := kind.WithVersion(versions[0])
	if known, ok := m.mappings.Load(key); ok {
		if mapping, ok := known.(*meta.RESTMapping); ok {
			return mapping, nil
		}
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.mappings.Store(key, mapping)
	}
	return mapping, err
}

// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatusEndpoint is where the status of an object is written: to the status subresource or to the main resource.
type StatusEndpoint int

// These constants are the values of StatusEndpoint.
const (
	StatusEndpointUnknown StatusEndpoint = iota
	StatusEndpointSubresource
	StatusEndpointMain
)

// The cache `kindCache` contains the status endpoint of each kind. The cache `patchForbiddenCache` contains the
// endpoints where patches are forbidden but updates are allowed. Entries may be wrong or missing. In that case, one
// additional call is made and the entry is corrected. The cache `patchForbiddenCache` is small, because each entry
// keeps the RESTMapper of a client in memory.
var (
	kindCache           = lru.New(1024)
	patchForbiddenCache = lru.New(maxPatchForbidden)
)

const maxPatchForbidden = 64

// patchForbidden identifies an endpoint that the client may not patch: the main resource or a subresource of a kind. It
// is a key of the cache `patchForbiddenCache`.
type patchForbidden struct {
	cluster     any // the client's RESTMapper, which is different for each cluster and user, or nil
	kind        schema.GroupVersionKind
	subresource string
}

func newPatchForbidden(c client.Client, kind schema.GroupVersionKind, subresource string) patchForbidden {
	if mapper := c.RESTMapper(); mapper != nil && reflect.ValueOf(mapper).Comparable() {
		return patchForbidden{mapper, kind, subresource}
	}
	return patchForbidden{nil, kind, subresource}
}

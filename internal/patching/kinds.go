// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatusEndpoint says where the status of a kind is written.
type StatusEndpoint int

// The places of a status.
const (
	StatusEndpointUnknown StatusEndpoint = iota
	StatusEndpointSubresource
	StatusEndpointMain
)

// kinds remembers where the status of a kind was found, and bans where patches were refused and updates were not. Both are hints:
// what turns out to be wrong, or was forgotten, costs a call and is corrected. A ban keeps the mapper of its client from being freed,
// so there are few.
var (
	kinds = lru.New(1024)
	bans  = lru.New(maxBans)
)

const maxBans = 64

// ban names the endpoint of a kind in a cluster.
type ban struct {
	cluster     any // tells clusters and users apart
	kind        schema.GroupVersionKind
	subresource string
}

func newBan(c client.Client, kind schema.GroupVersionKind, subresource string) ban {
	if mapper := c.RESTMapper(); mapper != nil && reflect.ValueOf(mapper).Comparable() {
		return ban{mapper, kind, subresource}
	}
	return ban{nil, kind, subresource}
}

// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatusEndpoint is the endpoint to which the status of a kind is written.
type StatusEndpoint int

// The endpoints of a status.
const (
	StatusEndpointUnknown StatusEndpoint = iota
	StatusEndpointSubresource
	StatusEndpointMain
)

// kinds remembers the status endpoint of each kind. bans remembers where patches were forbidden and updates were not.
// Both are hints: a wrong or missing entry costs one call and is corrected. A ban keeps the mapper of its client from
// being freed, so their number is small.
var (
	kinds = lru.New(1024)
	bans  = lru.New(maxBans)
)

const maxBans = 64

// ban identifies the endpoint of a kind in a cluster.
type ban struct {
	cluster     any // distinguishes clusters and users
	kind        schema.GroupVersionKind
	subresource string
}

func newBan(c client.Client, kind schema.GroupVersionKind, subresource string) ban {
	if mapper := c.RESTMapper(); mapper != nil && reflect.ValueOf(mapper).Comparable() {
		return ban{mapper, kind, subresource}
	}
	return ban{nil, kind, subresource}
}

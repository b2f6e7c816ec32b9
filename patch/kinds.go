// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// statusEndpointKind says where the status of a kind is written.
type statusEndpointKind int

const (
	statusUnknown statusEndpointKind = iota
	statusApart
	statusInBody
)

// memory keeps where the status of a kind was found. It is a hint only, since clusters may differ: what turns
// out to be wrong costs a call and is corrected.
type memory struct{ kinds sync.Map }

// kinds is bounded by the number of kinds that a program writes to.
var kinds memory

func (m *memory) of(gvk schema.GroupVersionKind) statusEndpointKind {
	found, _ := m.kinds.Load(gvk)
	where, _ := found.(statusEndpointKind)
	return where
}

func (m *memory) learn(gvk schema.GroupVersionKind, where statusEndpointKind) {
	m.kinds.Store(gvk, where)
}

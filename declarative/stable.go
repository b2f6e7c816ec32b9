// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"sync"
	"time"

	"github.com/deployerkit/deployerkit/apply"
)

const (
	// calmLimit is a number of consecutive calls. An item counts as stable again if none of these calls changed the
	// desired children.
	calmLimit = 8
	// firstDelay and lastDelay bound the delay of the next call for an item whose handler is unstable.
	firstDelay, lastDelay = time.Second, 10 * time.Minute
	// maxKept and maxKeptPerItem limit the memory for stored children, in bytes of JSON: maxKept for all items
	// together, and maxKeptPerItem for each item.
	maxKept, maxKeptPerItem = 16 << 20, 1 << 20
	// maxPaths is the maximum number of fields that unstable.Paths contains.
	maxPaths = 5
)

// stability detects handlers that change the desired children without a reason: the same inputs lead to different
// children. The inputs are the item, its status, its target, and the observed children without the fields that the
// handler itself sets. A call with different inputs proves nothing, however many calls in a row change the children: the
// handler may proceed in steps.
//
// For most items, stability stores only three hashes. If a call changes the children although the item has not changed,
// stability also stores the children, up to a limit for all items. It is safe for concurrent use.
type stability struct {
	mu   sync.Mutex
	kept int // the total size of the children in the field `last` of all items, in bytes

	room, roomPerItem int // room is the maximum of the field kept, and roomPerItem of each steadiness.lastSize
}

// steadiness is the data that stability stores for one item.
type steadiness struct {
	item, inputs, children fingerprint
	last                   map[string][]byte // the children of the last call as JSON, or nil if they are not kept
	lastSize               int
	calm                   int // consecutive calls that did not change the children
	delay                  time.Duration
}

// unstable is the result of stability.observe for one call of a handler.
type unstable struct {
	// Paths are the first fields that changed, such as "Deployment.apps shop/web .spec.replicas". If there are none,
	// the handler is stable.
	Paths []string
	// Delay is the time by which the next call should be delayed.
	Delay time.Duration
}

func newStability() *stability {
	return &stability{room: maxKept, roomPerItem: maxKeptPerItem}
}

// forget discards the state of an item.
func (s *stability) forget(known *steadiness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(known)
	*known = steadiness{}
}

// observe checks whether a handler is unstable. It must be called after each call of the handler, with the result of
// [Options.Desired] for the response. It compares the call with the state of the item and changes this state. Before the
// first call, the state is the zero value.
func (s *stability) observe(known *steadiness, req *SyncRequest, desired []apply.Desired) unstable {
	all := encodeAll(desired)
	now := steadiness{item: itemPrint(req), inputs: inputsPrint(req, desired), children: printOf(all)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known.item != now.item {
		s.drop(known)
		*known = now
		return unstable{}
	}
	sameInputs := known.inputs == now.inputs
	known.inputs = now.inputs
	if known.children == now.children {
		s.calm(known)
		return unstable{}
	}
	known.children, known.calm = now.children, 0
	return s.changed(known, sameInputs, all)
}

// calm records a call that did not change the desired children.
func (s *stability) calm(known *steadiness) {
	known.calm++
	if known.delay == 0 || known.calm >= calmLimit {
		known.delay = 0
		s.drop(known)
	}
}

// changed checks a call that changed the desired children. For the first such call, it only stores the children: it
// cannot determine which fields changed, because the children of the previous call are not stored.
func (s *stability) changed(known *steadiness, sameInputs bool, all map[string][]byte) unstable {
	last := known.last
	s.keep(known, all)
	if !sameInputs {
		return unstable{}
	}
	if last == nil && known.last != nil {
		return unstable{}
	}
	known.delay = min(max(firstDelay, 2*known.delay), lastDelay)
	paths := []string{"(the children are too large to name the field)"}
	if last != nil && known.last != nil {
		paths = differences(last, known.last, maxPaths)
	}
	return unstable{Paths: paths, Delay: known.delay}
}

// keep stores the children of an item whose handler may be unstable. It stores nothing if their size exceeds a limit.
func (s *stability) keep(known *steadiness, all map[string][]byte) {
	s.drop(known)
	size := 0
	for name, body := range all {
		size += len(name) + len(body)
	}
	if size > s.roomPerItem || s.kept+size > s.room {
		return
	}
	known.last, known.lastSize = all, size
	s.kept += size
}

// drop discards the stored children of an item.
func (s *stability) drop(known *steadiness) {
	s.kept -= known.lastSize
	known.last, known.lastSize = nil, 0
}

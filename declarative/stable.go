// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
)

const (
	// streakLimit is how many calls in a row may change the children of an item that has not changed itself.
	streakLimit = 5
	// calmLimit is how many calls in a row must leave the children unchanged before an item counts as stable again.
	calmLimit = 8
	// firstDelay and lastDelay bound the delay of an unstable item.
	firstDelay, lastDelay = time.Second, 10 * time.Minute
	// maxKept and maxKeptPerItem bound the JSON of children that is kept of all suspects together, and of one.
	maxKept, maxKeptPerItem = 16 << 20, 1 << 20
	// maxPaths is how many fields are named.
	maxPaths = 5
)

// stability finds handlers whose children change although nothing changed. There are two signs. Either the same inputs
// (item, status, target, and the observed children without what the handler itself wants there) give other children, or
// each of several calls in a row changes the children of an item that has not changed itself, as when a new value
// starts a rollout whose progress makes each input different. It keeps three hashes of an item that is not suspicious,
// and of other items also the children, within a bound for all of them. It is safe for concurrent use.
type stability struct {
	mu    sync.Mutex
	items map[types.UID]*steadiness
	kept  int // bytes of all steadiness.last

	room, roomPerItem int // bounds of kept, and of what is kept of one item
}

// steadiness is what is known about one item.
type steadiness struct {
	item, inputs, children fingerprint
	last                   map[string][]byte // the children of the last call as JSON, or nil if they are not kept
	lastSize               int
	streak                 int // calls in a row that changed the children
	calm                   int // calls in a row that did not
	delay                  time.Duration
}

// unstable is the result of stability for one call of a handler.
type unstable struct {
	// Paths are the first fields that changed, such as "Deployment.apps shop/web .spec.replicas". If there are none,
	// the handler is stable.
	Paths []string
	// Delay is how long the next call should wait.
	Delay time.Duration
}

func newStability() *stability {
	return &stability{items: map[types.UID]*steadiness{}, room: maxKept, roomPerItem: maxKeptPerItem}
}

// forget drops what is known about an item.
func (s *stability) forget(item types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.items[item]; known != nil {
		s.drop(known)
	}
	delete(s.items, item)
}

// observe is called after each call of a handler for an item, with what [Options.Desired] made of the response.
func (s *stability) observe(req *SyncRequest, desired []apply.Desired) unstable {
	all := encodeAll(desired)
	now := steadiness{item: itemPrint(req), inputs: inputsPrint(req, desired), children: childrenPrint(all)}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.items[req.Item.UID]
	if known == nil || known.item != now.item {
		if known != nil {
			s.drop(known)
		}
		s.items[req.Item.UID] = &now
		return unstable{}
	}
	sameInputs := known.inputs == now.inputs
	known.inputs = now.inputs
	if known.children == now.children {
		s.calm(known)
		return unstable{}
	}
	known.children, known.calm = now.children, 0
	known.streak++
	return s.changed(known, sameInputs, all)
}

// calm records a call that changed nothing.
func (s *stability) calm(known *steadiness) {
	known.streak = 0
	known.calm++
	if known.delay == 0 || known.calm >= calmLimit {
		known.delay = 0
		s.drop(known)
	}
}

// changed judges a call that changed the children. The first such call is only remembered. What it changed is unknown,
// because the children of an item without suspicion are not kept.
func (s *stability) changed(known *steadiness, sameInputs bool, all map[string][]byte) unstable {
	last := known.last
	s.keep(known, all)
	if !sameInputs && known.streak < streakLimit && known.delay == 0 {
		return unstable{}
	}
	if last == nil && known.last != nil {
		return unstable{}
	}
	known.delay = min(max(firstDelay, 2*known.delay), lastDelay)
	paths := []string{"(too large to tell the field)"}
	if last != nil && known.last != nil {
		paths = differences(last, known.last, maxPaths)
	}
	return unstable{Paths: paths, Delay: known.delay}
}

// keep remembers the children of a suspect, if there is room.
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

// drop forgets the children of an item.
func (s *stability) drop(known *steadiness) {
	s.kept -= known.lastSize
	known.last, known.lastSize = nil, 0
}

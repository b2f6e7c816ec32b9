// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"sync"
	"time"

	"github.com/deployerkit/deployerkit/apply"
)

const (
	// maxCalmCalls is a number of consecutive calls. An item counts as stable again if none of these calls changed the
	// desired children.
	maxCalmCalls = 8
	// firstDelay and lastDelay bound the delay of the next call for an item whose handler is unstable.
	firstDelay, lastDelay = time.Second, 10 * time.Minute
	// maxKept and maxKeptPerItem limit the memory for stored calls, in bytes of JSON: maxKept for all items together,
	// and maxKeptPerItem for each item.
	maxKept, maxKeptPerItem = 16 << 20, 1 << 20
	// maxPaths is the maximum number of fields that stabilityResult.Paths contains.
	maxPaths = 5
)

// stability detects handlers that change the desired children without a reason: the same request leads to different
// children. Most changes have a visible reason: the item, its status, its target, or a field of an observed child that
// the handler does not set. If there is none, the handler may still have a reason, because it may read the fields that
// it sets itself. An example is a handler that counts. In this case, stability repeats an earlier call to compare the
// results.
//
// For most items, stability stores only three hashes. If a call changes the children although the item has not changed,
// stability also stores the request and the children, up to a limit for all items. It is safe for concurrent use.
type stability struct {
	mu   sync.Mutex
	kept int // the total size of the calls in the field `last` of all items, in bytes

	room, roomPerItem int // room is the maximum of the field kept, and roomPerItem of each stabilityState.lastSize
}

// stabilityState is the data that stability stores for one item.
type stabilityState struct {
	item, inputs, children fingerprint
	last                   *handlerCall // the last call that changed the children, or nil if it is not kept
	lastSize               int
	calm                   int // consecutive calls that did not change the children
	delay                  time.Duration
}

// handlerCall is a call of a handler with its result.
type handlerCall struct {
	req      *SyncRequest
	children map[string][]byte // as JSON, by name
}

// size returns the size of the call in bytes of JSON.
func (a *handlerCall) size() int {
	size := len(a.req.Raw) + len(a.req.Status)
	for _, child := range a.req.Children {
		size += len(child.Raw())
	}
	for name, body := range a.children {
		size += len(name) + len(body)
	}
	return size
}

// repeatFunc calls a handler again with an earlier request, and returns the desired children. It returns an error if
// the call proves nothing.
type repeatFunc func(*SyncRequest) ([]apply.Desired, error)

// stabilityResult is the result of stability.observe for one call of a handler.
type stabilityResult struct {
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
func (s *stability) forget(known *stabilityState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(known)
	*known = stabilityState{}
}

// observe checks whether a handler is unstable. It must be called after each call of the handler, with the result of
// [Options.ToDesired] for the response. It compares the call with the state of the item and changes this state. Before
// the first call, the state is the zero value. If the comparison proves nothing, observe calls the function `repeat`
// once.
func (s *stability) observe(known *stabilityState, req *SyncRequest, desired []apply.Desired, repeat repeatFunc) stabilityResult {
	now := &handlerCall{req: req, children: encodeAll(desired)}
	suspect := s.compare(known, now, stabilityState{item: hashItem(req), inputs: hashInputs(req, desired), children: hashValues(now.children)})
	if suspect == nil {
		return stabilityResult{}
	}
	again, err := repeat(suspect.req)
	if err != nil {
		return stabilityResult{}
	}
	paths := diffChildren(suspect.children, encodeAll(again), maxPaths)
	if len(paths) == 0 {
		return stabilityResult{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known.delay = min(max(firstDelay, 2*known.delay), lastDelay)
	return stabilityResult{Paths: paths, Delay: known.delay}
}

// compare compares a call with the state of the item, and updates the state. If the call changed the children without a
// visible reason, compare returns the call to repeat.
func (s *stability) compare(known *stabilityState, call *handlerCall, now stabilityState) *handlerCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known.item != now.item {
		s.drop(known)
		*known = now
		return nil
	}
	sameInputs := known.inputs == now.inputs
	known.inputs = now.inputs
	if known.children == now.children {
		s.recordCalm(known)
		return nil
	}
	known.children, known.calm = now.children, 0
	last := known.last
	s.keep(known, call)
	switch {
	case !sameInputs:
		return nil
	case last != nil:
		return last
	case known.last != nil:
		return nil // the first change in a row
	}
	return call // earlier calls are too large to be kept
}

// recordCalm records a call that did not change the desired children.
func (s *stability) recordCalm(known *stabilityState) {
	known.calm++
	if known.delay == 0 || known.calm >= maxCalmCalls {
		known.delay = 0
		s.drop(known)
	}
}

// keep stores a call of an item whose handler may be unstable. It stores nothing if the size of the call exceeds a
// limit.
func (s *stability) keep(known *stabilityState, call *handlerCall) {
	s.drop(known)
	size := call.size()
	if size > s.roomPerItem || s.kept+size > s.room {
		return
	}
	known.last, known.lastSize = call, size
	s.kept += size
}

// drop discards the stored call of an item.
func (s *stability) drop(known *stabilityState) {
	s.kept -= known.lastSize
	known.last, known.lastSize = nil, 0
}

// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Point identifies a request in a run of a test, so that a fault can be applied to the same request in another run. A
// [Scenario] with RecordPoints collects the points of a run.
type Point struct {
	// Request describes the request. Request.Namespace may differ in another run. If Scenario.Alias is set, Request.Name
	// is the result of Alias.
	Request Request
	// Nth is the number of the request among the requests with the same verb, resource, subresource and name, counted
	// from 1. It does not depend on the order of other requests.
	Nth int
	// ResponseChanged is true if the request is a read, and an earlier response to the same read was different. Only then
	// does the fault [Stale] have an effect.
	ResponseChanged bool
	// Events is the number of events that a watch has delivered so far, including the existing objects in a streamed
	// list.
	Events int

	alias func(Request) string
}

// IsWrite reports whether the request may change something.
func (p Point) IsWrite() bool { return Match{Verb: WriteVerb}.matchesVerb(p.Request) }

// IsRead reports whether the request is a get or a list.
func (p Point) IsRead() bool { return p.Request.isRead() }

// IsWatch reports whether the request is a watch.
func (p Point) IsWatch() bool { return p.Request.Verb == watchVerb }

// watchPositions is the number of positions in a watch for which SelectFaults returns faults. A position is the number
// of events before the fault.
const watchPositions = 3

// watchDelay is how long a stalled watch sends no events.
const watchDelay = 300 * time.Millisecond

// SelectFaults returns the faults that a test should apply to the request, each in a separate run. For a write, these
// are [KillBefore] and [KillAfter]. For a read with ResponseChanged, it is [Stale] with the previous response. For a
// watch, these are [ReplayWatch] and [DelayWatchEvents], each after a quarter, a half and three quarters of the events.
// For other reads and for watches without events, SelectFaults returns nil.
func (p Point) SelectFaults() []Fault {
	switch {
	case p.IsWrite():
		return []Fault{KillBefore(), KillAfter()}
	case p.ResponseChanged:
		return []Fault{Stale(1)}
	}
	var faults []Fault
	last := 0
	for i := range watchPositions {
		if at := p.Events * (i + 1) / (watchPositions + 1); at > last {
			faults = append(faults, ReplayWatch(at), DelayWatchEvents(at, watchDelay))
			last = at
		}
	}
	return faults
}

// NewRule returns a rule that applies f to this request when the same test runs again. The namespace may be different
// in that run. If f has no effect on this request, the rule applies f to the next request with the same verb, resource
// and name. In that case, WasHit returns false. If f has no effect at all, the test fails, because the rule is not
// Optional.
func (p Point) NewRule(f Fault) Rule {
	m := Match{Verb: p.Request.Verb, Resource: p.Request.Resource, Subresource: p.Request.Subresource}
	m.Where = func(r Request) bool {
		return r.Subresource == p.Request.Subresource && resolveName(r, p.alias) == p.Request.Name
	}
	return Rule{Name: fmt.Sprintf("%s: %s", p, f), Match: m, Nth: p.Nth, Fault: f}
}

// resolveName returns a name of the object that is the same in each run.
func resolveName(r Request, alias func(Request) string) string {
	if alias == nil {
		return r.Name
	}
	return alias(r)
}

// WasHit reports whether the first fault in a report has hit exactly this request. The scenario must have only one
// rule: the rule that p.NewRule returned.
func (p Point) WasHit(r Report) bool {
	return len(r.Injected) > 0 && r.Injected[0].Nth == p.Nth
}

// String returns the point in the form "patch deployitems/status a #3".
func (p Point) String() string {
	what := p.Request.Verb + " " + p.Request.Resource
	if p.Request.Subresource != "" {
		what += "/" + p.Request.Subresource
	}
	if p.Request.Name != "" {
		what += " " + p.Request.Name
	}
	return fmt.Sprintf("%s #%d", what, p.Nth)
}

// pointRecorder collects the points of one run.
type pointRecorder struct {
	alias  func(Request) string
	mu     sync.Mutex
	points []*pointState
	counts map[Request]int // the field Namespace of each key is empty
}

// pointState is a Point during a run. The fields ResponseChanged and Events may still change.
type pointState struct {
	survey *pointRecorder
	Point
}

// add records a request as a point. It returns nil for discovery and for requests about events and leases, which a
// survey ignores.
func (s *pointRecorder) add(r Request) *pointState {
	if r.Resource == "" || r.Resource == "events" || r.Resource == "leases" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[Request]int{}
	}
	r.Name = resolveName(r, s.alias)
	kind := r
	kind.Namespace = ""
	s.counts[kind]++
	p := &pointState{survey: s, Point: Point{Request: r, Nth: s.counts[kind], alias: s.alias}}
	s.points = append(s.points, p)
	return p
}

// list returns the points that were collected so far. If s is nil, it returns nil.
func (s *pointRecorder) list() []Point {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	points := make([]Point, 0, len(s.points))
	for _, p := range s.points {
		points = append(points, p.Point)
	}
	return points
}

// update calls `change` for the point while it holds the lock.
func (p *pointState) update(change func(*Point)) {
	p.survey.mu.Lock()
	defer p.survey.mu.Unlock()
	change(&p.Point)
}

// updatePoint updates the point of a request when the response arrives. For a read, it sets ResponseChanged. For a
// watch, it replaces the body by one that counts events.
func (x *exchange) updatePoint(res *http.Response) {
	switch split := newSplitter(res); {
	case x.about.isRead():
		past := canStore(res) && x.network.history.getEarlier(x.req, 1) != nil
		x.point.update(func(p *Point) { p.ResponseChanged = past })
	case x.about.Verb == watchVerb && split != nil:
		res.Body = &countingWatchBody{ReadCloser: res.Body, events: bufio.NewReader(res.Body), split: split, point: x.point}
	}
}

// countingWatchBody is the body of a watch that counts the events.
type countingWatchBody struct {
	io.ReadCloser
	events  *bufio.Reader
	split   splitter
	point   *pointState
	pending []byte
}

// Read returns pending bytes, or the next event.
func (c *countingWatchBody) Read(into []byte) (int, error) {
	if len(c.pending) == 0 {
		var err error
		if c.pending, err = c.split(c.events); err != nil {
			return copy(into, c.pending), err
		}
		c.point.update(func(p *Point) { p.Events++ })
	}
	n := copy(into, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

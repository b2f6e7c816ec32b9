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
// [Scenario] with Survey collects the points of a run.
type Point struct {
	// Request describes the request. Request.Namespace may differ in another run. If Scenario.Alias is set, Request.Name
	// is the result of Alias.
	Request Request
	// Nth is the number of the request among the requests with the same verb, resource, subresource and name, counted
	// from 1. It does not depend on the order of other requests.
	Nth int
	// Past is true if the request is a read, and an earlier response to the same read was different. Only then does the
	// fault [Stale] have an effect.
	Past bool
	// Events is the number of events that a watch has delivered so far, including the existing objects in a streamed
	// list.
	Events int

	alias func(Request) string
}

// IsWrite reports whether the request may change something.
func (p Point) IsWrite() bool { return Match{Verb: WriteVerb}.verb(p.Request) }

// IsRead reports whether the request is a get or a list.
func (p Point) IsRead() bool { return p.Request.isRead() }

// IsWatch reports whether the request is a watch.
func (p Point) IsWatch() bool { return p.Request.Verb == watchVerb }

// places is the number of positions in a watch for which Faults returns faults. A position is the number of events
// before the fault.
const places = 3

// stall is how long a stalled watch sends no events.
const stall = 300 * time.Millisecond

// Faults returns the faults that a test should apply to the request, each in a separate run. For a write, these are
// [KillBefore] and [KillAfter]. For a read with Past, it is [Stale] with the previous response. For a watch, these are
// [ReplayWatch] and [StallWatch], each after a quarter, a half and three quarters of the events. For other reads and
// for watches without events, Faults returns nil.
func (p Point) Faults() []Fault {
	switch {
	case p.IsWrite():
		return []Fault{KillBefore(), KillAfter()}
	case p.Past:
		return []Fault{Stale(1)}
	}
	var faults []Fault
	last := 0
	for i := range places {
		if at := p.Events * (i + 1) / (places + 1); at > last {
			faults = append(faults, ReplayWatch(at), StallWatch(at, stall))
			last = at
		}
	}
	return faults
}

// Rule returns a rule that applies f to this request when the same test runs again. The namespace may be different in
// that run. If f has no effect on this request, the rule applies f to the next request with the same verb, resource and
// name. In that case, Hit returns false. If f has no effect at all, the test fails, because the rule is not Optional.
func (p Point) Rule(f Fault) Rule {
	m := Match{Verb: p.Request.Verb, Resource: p.Request.Resource, Subresource: p.Request.Subresource}
	m.Where = func(r Request) bool {
		return r.Subresource == p.Request.Subresource && nameOf(r, p.alias) == p.Request.Name
	}
	return Rule{Name: fmt.Sprintf("%s: %s", p, f), Match: m, Nth: p.Nth, Fault: f}
}

// nameOf returns a name of the object that is the same in each run.
func nameOf(r Request, alias func(Request) string) string {
	if alias == nil {
		return r.Name
	}
	return alias(r)
}

// Hit reports whether the first fault in a report has hit exactly this request. The scenario must have only one rule:
// the rule that p.Rule returned.
func (p Point) Hit(r Report) bool {
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

// survey collects the points of one run.
type survey struct {
	alias  func(Request) string
	mu     sync.Mutex
	points []*pointState
	counts map[Request]int // the field Namespace of each key is empty
}

// pointState is a Point during a run. The fields Past and Events may still change.
type pointState struct {
	survey *survey
	Point
}

// add records a request as a point. It returns nil for discovery and for requests about events and leases, which a
// survey ignores.
func (s *survey) add(r Request) *pointState {
	if r.Resource == "" || r.Resource == "events" || r.Resource == "leases" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[Request]int{}
	}
	r.Name = nameOf(r, s.alias)
	kind := r
	kind.Namespace = ""
	s.counts[kind]++
	p := &pointState{survey: s, Point: Point{Request: r, Nth: s.counts[kind], alias: s.alias}}
	s.points = append(s.points, p)
	return p
}

// list returns the points that were collected so far. If s is nil, it returns nil.
func (s *survey) list() []Point {
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

// note calls `change` for the point while it holds the lock.
func (p *pointState) note(change func(*Point)) {
	p.survey.mu.Lock()
	defer p.survey.mu.Unlock()
	change(&p.Point)
}

// surveyed updates the point of a request when the response arrives. For a read, it sets Past. For a watch, it replaces
// the body by one that counts events.
func (x *exchange) surveyed(res *http.Response) {
	switch split := splitterOf(res); {
	case x.about.isRead():
		past := memorable(res) && x.network.memory.before(x.req, 1) != nil
		x.point.note(func(p *Point) { p.Past = past })
	case x.about.Verb == watchVerb && split != nil:
		res.Body = &countedEvents{ReadCloser: res.Body, events: bufio.NewReader(res.Body), split: split, point: x.point}
	}
}

// countedEvents is the body of a watch that counts the events.
type countedEvents struct {
	io.ReadCloser
	events  *bufio.Reader
	split   splitter
	point   *pointState
	pending []byte
}

// Read returns pending bytes, or the next event.
func (c *countedEvents) Read(into []byte) (int, error) {
	if len(c.pending) == 0 {
		var err error
		if c.pending, err = c.split(c.events); err != nil {
			return copy(into, c.pending), err
		}
		c.point.note(func(p *Point) { p.Events++ })
	}
	n := copy(into, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

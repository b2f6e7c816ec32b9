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

// Point is a request at which a run can fail, and which can be found again in another run of the same test. A
// [Scenario] with Survey finds the points of a run.
type Point struct {
	// Request is the kind of the request. Its namespace is that of the surveyed run; another run may have another one.
	// Its name is that of Scenario.Alias.
	Request Request
	// Nth is its number among the requests with this verb, resource, subresource and name, counted from 1. It
	// identifies the request even if other requests come in another order.
	Nth int
	// Past reports whether it is a read for which an earlier, different response was known, so that [Stale] can return
	// that. It is false for the first read of something, and as long as nothing has changed since.
	Past bool
	// Events is the number of events that a watch delivered so far, including the initial state of a streamed list.
	Events int

	alias func(Request) string
}

// IsWrite reports whether the request may change something.
func (p Point) IsWrite() bool { return Match{Verb: WriteVerb}.verb(p.Request) }

// IsRead reports whether the request is a get or a list.
func (p Point) IsRead() bool { return p.Request.isRead() }

// IsWatch reports whether the request is a watch.
func (p Point) IsWatch() bool { return p.Request.Verb == watchVerb }

// places is the number of positions among its events at which a fault is applied to a watch.
const places = 3

// stall is how long a stalled watch is behind.
const stall = 300 * time.Millisecond

// Faults returns the faults that a systematic run tries at the point. For a write, the process is killed right before
// and right after it. A read with a past gets the previous response. A watch repeats everything that it has delivered,
// or is silent for a moment, at each quarter of its events. There are none for reads without a past and for watches
// that delivered nothing.
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

// Rule returns a rule that applies a fault to the request, in a run like the surveyed one and in any namespace. If the
// fault misses there, it is applied to a later request of the same kind; Hit reports that. Like any rule that is not
// Optional, it fails the test if it did nothing.
func (p Point) Rule(f Fault) Rule {
	m := Match{Verb: p.Request.Verb, Resource: p.Request.Resource, Subresource: p.Request.Subresource}
	m.Where = func(r Request) bool {
		return r.Subresource == p.Request.Subresource && nameOf(r, p.alias) == p.Request.Name
	}
	return Rule{Name: fmt.Sprintf("%s: %s", p, f), Match: m, Nth: p.Nth, Fault: f}
}

// nameOf returns the name of an object in all runs.
func nameOf(r Request, alias func(Request) string) string {
	if alias == nil {
		return r.Name
	}
	return alias(r)
}

// Hit reports whether the only rule of a scenario was the one that Rule returned, and hit exactly this request.
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

// survey collects the points of a run.
type survey struct {
	alias  func(Request) string
	mu     sync.Mutex
	points []*pointState
	counts map[Request]int // without namespace
}

// pointState is a point about which more may become known.
type pointState struct {
	survey *survey
	Point
}

// add records a request. It returns nil if the request is not counted.
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

// list returns the points so far. It returns none if s is nil.
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

// note changes the point.
func (p *pointState) note(change func(*Point)) {
	p.survey.mu.Lock()
	defer p.survey.mu.Unlock()
	change(&p.Point)
}

// surveyed inspects the response to a request.
func (x *exchange) surveyed(res *http.Response) {
	switch split := splitterOf(res); {
	case x.about.isRead():
		past := memorable(res) && x.network.memory.before(x.req, 1) != nil
		x.point.note(func(p *Point) { p.Past = past })
	case x.about.Verb == watchVerb && split != nil:
		res.Body = &countedEvents{ReadCloser: res.Body, events: bufio.NewReader(res.Body), split: split, point: x.point}
	}
}

// countedEvents is the body of a watch whose events are counted.
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

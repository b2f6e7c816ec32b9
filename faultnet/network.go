// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Scenario says which requests go wrong, and how. The same scenario does the
// same to the same requests.
type Scenario struct {
	// Rules are tried in this order: the first one that is due has the request. All of them count it.
	Rules []Rule
	// Seed decides for rules with a Chance. Each kind of request (verb, resource, object) has dice of its
	// own, so that the order in which a deployer's requests about different objects come makes no difference.
	Seed uint64
	// Survey remembers every request that goes through, for Report.Points.
	Survey bool
	// Alias gives the objects of a survey that have another name in each run one name for all of them. Optional.
	Alias func(Request) string
	// AtLeast is how many faults must have hit in all, for scenarios of optional rules. Default: 0.
	AtLeast int
	// Clock measures delays. Default: the real one.
	Clock clock.Clock
	// Log gets a line for each fault: the rule and what the request was about, no bodies and no headers.
	// Default: the log of the test.
	Log logr.Logger
}

// Network lies between a deployer and its API servers and goes wrong by a
// scenario. [Start] makes one for a test, [NewNetwork] one that only Kill disturbs. It is safe for concurrent use.
type Network struct {
	t     testing.TB
	clock clock.Clock
	log   logr.Logger
	seed  uint64
	least int
	// remembers reports whether a rule needs earlier answers.
	remembers bool
	memory    memory
	survey    *survey // optional
	ended     chan struct{}
	killed    chan struct{}

	mu       sync.Mutex
	armed    bool
	dead     bool
	over     bool
	rules    []*ruleState
	dice     map[diceKey]uint64
	injected []Injected
}

// Start starts a scenario that ends with the test. What goes through the
// returned network goes wrong by it: give a deployer the configuration that
// Wrap (in this process) or Proxy (for a program) returns, and talk to the API
// server directly in the test itself.
//
// At its end the test fails if a rule never did anything, unless the rule is
// Optional: a test must not pass because no fault hit. What was done is logged.
func Start(t testing.TB, s Scenario) *Network {
	t.Helper()
	n := NewNetwork()
	n.t, n.clock, n.log, n.seed, n.least = t, s.Clock, s.Log, s.Seed, s.AtLeast
	if n.clock == nil {
		n.clock = clock.RealClock{}
	}
	if n.log.GetSink() == nil {
		n.log = testLog(t)
	}
	for i, rule := range s.Rules {
		if err := rule.check(); err != nil {
			t.Fatalf("rule %d: %v", i+1, err)
		}
		n.rules = append(n.rules, &ruleState{Rule: rule, number: i + 1})
		n.remembers = n.remembers || rule.Fault.remembers
	}
	if s.Survey {
		n.survey, n.remembers = &survey{alias: s.Alias}, true
	}
	t.Cleanup(n.end)
	return n
}

// NewNetwork makes a network that passes everything, until it is killed. For programs; tests use [Start].
func NewNetwork() *Network {
	return &Network{armed: true, ended: make(chan struct{}), killed: make(chan struct{}), dice: map[diceKey]uint64{}}
}

// Wrap returns a copy of cfg whose requests go through the network.
func (n *Network) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(n.Transport)
	return wrapped
}

// Transport returns a transport whose requests go through the network, for
// clients that are not made of a config: WrapTransport of a deployer's options.
func (n *Network) Transport(next http.RoundTripper) http.RoundTripper {
	return &link{network: n, next: next}
}

// Disarm lets everything through as it is and counts nothing, until Arm. What
// a killed process sends still goes nowhere.
func (n *Network) Disarm() { n.arm(false) }

// Arm lets the rules count and act again after Disarm.
func (n *Network) Arm() { n.arm(true) }

func (n *Network) arm(armed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.armed = armed
}

// Kill cuts the network for good: no request gets through from now on. It is
// what [KillBefore] and [KillAfter] do at a request of a rule.
func (n *Network) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
	n.closeKilled()
}

// Killed is closed when the network was cut, after what the last request does has taken effect.
func (n *Network) Killed() <-chan struct{} { return n.killed }

// closeKilled needs the lock.
func (n *Network) closeKilled() {
	select {
	case <-n.killed:
	default:
		close(n.killed)
	}
}

// end ends all waits and tells what was done.
func (n *Network) end() {
	n.t.Helper()
	n.mu.Lock()
	n.armed, n.over = false, true
	n.mu.Unlock()
	close(n.ended)
	report := n.Report()
	n.t.Logf("faults:\n%s", report)
	for _, idle := range report.Idle() {
		n.t.Errorf("faults: rule %d (%s) did nothing: %d requests matched it", idle.Number, idle.Name, idle.Matched)
	}
	if hits := report.Hits(); hits < n.least {
		n.t.Errorf("faults: only %d hit, at least %d should have", hits, n.least)
	}
}

// errKilled is the error of each request through a network that was cut.
var errKilled = errors.New("the process was killed")

// link is the transport of one client.
type link struct {
	network *Network
	next    http.RoundTripper
}

// RoundTrip does to the request what the scenario wants.
func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{network: l.network, next: l.next, req: req}
	var counted bool
	x.about, counted = requestOf(req)
	if err := l.network.decide(x, counted); err != nil {
		x.drop()
		return nil, err
	}
	if x.rule == nil {
		return x.pass()
	}
	defer x.drop()
	return x.rule.Fault.inflict(x)
}

// exchange is one request on its way.
type exchange struct {
	network *Network
	next    http.RoundTripper
	req     *http.Request
	about   Request
	rule    *ruleState
	nth     int         // of the requests of the rule
	point   *pointState // nil if the request is not surveyed
	passed  bool
}

// pass sends the request and returns the answer.
func (x *exchange) pass() (*http.Response, error) {
	x.passed = true
	res, err := x.next.RoundTrip(x.req)
	if err != nil {
		return nil, err
	}
	if x.network.remembers && x.about.isRead() {
		if err := x.network.memory.note(x.req, res); err != nil {
			return nil, errors.Join(err, res.Body.Close()) // either an answer or an error, never both
		}
	}
	if x.point != nil {
		x.surveyed(res)
	}
	return res, nil
}

// drop ends a request that was not sent.
func (x *exchange) drop() {
	if !x.passed && x.req.Body != nil {
		_ = x.req.Body.Close()
	}
}

// hit notes that the rule did what it should.
func (x *exchange) hit() { x.network.hit(x) }

// miss gives the rule its chance back: it could do nothing here.
func (x *exchange) miss() { x.network.miss(x.rule) }

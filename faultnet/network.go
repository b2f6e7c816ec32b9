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

// Scenario specifies which requests fail, and how. The same scenario has the same effect on the same requests.
type Scenario struct {
	// Rules are tried in order. The first one that is due handles the request. All of them count it.
	Rules []Rule
	// Seed decides for rules with a Chance. Each kind of request (verb, resource, object) has its own random numbers,
	// so that the order of a deployer's requests about different objects does not matter.
	Seed uint64
	// Survey records every request that passes, for Report.Points.
	Survey bool
	// Alias returns a common name for objects of a survey that have a different name in each run. Optional.
	Alias func(Request) string
	// AtLeast is the minimum number of faults that must hit in total, for scenarios of optional rules. The default is
	// 0.
	AtLeast int
	// Clock measures delays. The default is the real clock.
	Clock clock.Clock
	// Log receives a line for each fault, with the rule and the kind of the request, but no bodies and no headers. The
	// default is the log of the test.
	Log logr.Logger
}

// Network lies between a deployer and its API servers and fails according to a scenario. [Start] creates one for a
// test, and [NewNetwork] one that fails only after Kill. It is safe for concurrent use.
type Network struct {
	t     testing.TB
	clock clock.Clock
	log   logr.Logger
	seed  uint64
	least int
	// remembers reports whether a rule needs earlier responses.
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

// Start starts a scenario that ends with the test. Requests through the returned network fail according to the
// scenario. Give a deployer the configuration that Wrap (in this process) or Proxy (for a program) returns, and use the
// API server directly in the test itself.
//
// At its end the test fails if a rule that is not Optional never did anything, because a test must not pass when no
// fault hit. The faults are logged.
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

// NewNetwork returns a network that passes everything until it is killed. It is for programs; tests use [Start].
func NewNetwork() *Network {
	return &Network{armed: true, ended: make(chan struct{}), killed: make(chan struct{}), dice: map[diceKey]uint64{}}
}

// Wrap returns a copy of cfg whose requests pass the network.
func (n *Network) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(n.Transport)
	return wrapped
}

// Transport returns a transport whose requests pass the network, for clients that are not created from a config. Use it
// as WrapTransport in a deployer's options.
func (n *Network) Transport(next http.RoundTripper) http.RoundTripper {
	return &link{network: n, next: next}
}

// Disarm makes the network pass everything and count nothing, until Arm is called. Requests of a killed process still
// fail.
func (n *Network) Disarm() { n.arm(false) }

// Arm makes the rules count and act again after Disarm.
func (n *Network) Arm() { n.arm(true) }

func (n *Network) arm(armed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.armed = armed
}

// Kill cuts the network permanently: from now on every request fails. [KillBefore] and [KillAfter] do the same at a
// request of a rule.
func (n *Network) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
	n.closeKilled()
}

// Killed returns a channel that is closed when the network was cut and the last request has taken effect.
func (n *Network) Killed() <-chan struct{} { return n.killed }

// closeKilled closes the channel. The caller holds the lock.
func (n *Network) closeKilled() {
	select {
	case <-n.killed:
	default:
		close(n.killed)
	}
}

// end ends all waits and logs what was done.
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

// errKilled is the error of every request through a network that was cut.
var errKilled = errors.New("the process was killed")

// link is the transport of one client.
type link struct {
	network *Network
	next    http.RoundTripper
}

// RoundTrip applies the scenario to the request.
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

// exchange is one request in progress.
type exchange struct {
	network *Network
	next    http.RoundTripper
	req     *http.Request
	about   Request
	rule    *ruleState
	nth     int         // its number among the requests of the rule
	point   *pointState // nil if the request is not surveyed
	passed  bool
}

// pass sends the request and returns the response.
func (x *exchange) pass() (*http.Response, error) {
	x.passed = true
	res, err := x.next.RoundTrip(x.req)
	if err != nil {
		return nil, err
	}
	if x.network.remembers && x.about.isRead() {
		if err := x.network.memory.note(x.req, res); err != nil {
			return nil, errors.Join(err, res.Body.Close()) // either a response or an error, never both
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

// hit records that the rule had an effect.
func (x *exchange) hit() { x.network.hit(x) }

// miss records that the rule could not have an effect on this request.
func (x *exchange) miss() { x.network.miss(x.rule) }

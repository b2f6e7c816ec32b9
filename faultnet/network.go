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

// Scenario specifies which requests fail and how they fail. The same requests always fail in the same way.
type Scenario struct {
	// Rules are tried in order. A request gets the fault of the first rule that matches the request and whose fields
	// Nth, Times and Chance permit a fault. All rules that match the request count it.
	Rules []Rule
	// Seed determines the random numbers for rules with a Chance. There is a separate sequence of random numbers for each
	// verb, resource and object, so that the order of requests about different objects does not matter.
	Seed uint64
	// RecordPoints means that every request is recorded in Report.Points.
	RecordPoints bool
	// Alias returns an alias for an object whose name differs between runs of the test. The alias must be the same in
	// each run, so that a Point can be found again in another run. Alias may be nil.
	Alias func(Request) string
	// MinHits is the minimum number of hits of all rules together. If there are fewer hits, the test fails. MinHits is
	// for scenarios with optional rules. The default is 0.
	MinHits int
	// Clock measures the delays of faults. The default is the real clock.
	Clock clock.Clock
	// Log receives a line for each fault, with the rule and the kind of the request, but no bodies and no headers. The
	// default is the log of the test.
	Log logr.Logger
}

// Network connects a deployer with API servers, and makes requests fail according to a scenario. [Start] creates a
// network for a test. In a network that [NewNetwork] creates, requests fail only after Kill. A Network is safe for
// concurrent use.
type Network struct {
	t       testing.TB
	clock   clock.Clock
	log     logr.Logger
	seed    uint64
	minHits int
	// needsHistory is true if a rule or the survey needs earlier responses.
	needsHistory bool
	history      responseHistory
	recorder     *pointRecorder // nil unless RecordPoints of the scenario is set
	ended        chan struct{}
	killed       chan struct{}

	mu           sync.Mutex
	enabled      bool
	dead         bool
	testEnded    bool
	rules        []*ruleState
	randomCounts map[randomKey]uint64
	injected     []Injected
}

// Start starts a scenario that ends with the test. Requests through the returned network fail according to the
// scenario. Pass the result of Wrap to a deployer in this process, or the result of Proxy to a program. The test itself
// must use the API server directly.
//
// At the end of the test, all faults are logged. If a rule had no effect and is not Optional, the test fails, because a
// test without a fault proves nothing.
func Start(t testing.TB, s Scenario) *Network {
	t.Helper()
	n := NewNetwork()
	n.t, n.clock, n.log, n.seed, n.minHits = t, s.Clock, s.Log, s.Seed, s.MinHits
	if n.clock == nil {
		n.clock = clock.RealClock{}
	}
	if n.log.GetSink() == nil {
		n.log = newTestLogger(t)
	}
	for i, rule := range s.Rules {
		if err := rule.check(); err != nil {
			t.Fatalf("rule %d: %v", i+1, err)
		}
		n.rules = append(n.rules, &ruleState{Rule: rule, number: i + 1})
		n.needsHistory = n.needsHistory || rule.Fault.needsHistory
	}
	if s.RecordPoints {
		n.recorder, n.needsHistory = &pointRecorder{alias: s.Alias}, true
	}
	t.Cleanup(n.complete)
	return n
}

// NewNetwork returns a network that sends all requests unchanged until Kill is called. It is for programs. Tests use
// [Start].
func NewNetwork() *Network {
	return &Network{enabled: true, ended: make(chan struct{}), killed: make(chan struct{}), randomCounts: map[randomKey]uint64{}}
}

// Wrap returns a copy of cfg. Clients that use this copy send their requests through n.
func (n *Network) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(n.Transport)
	return wrapped
}

// Transport returns a transport that sends requests through the network. Use it for clients that are not created from a
// config, for example as WrapTransport in the options of a deployer.
func (n *Network) Transport(next http.RoundTripper) http.RoundTripper {
	return &networkTransport{network: n, next: next}
}

// Disable makes the network send all requests unchanged until Enable is called. Rules do not count these requests. If
// the network was killed, requests still fail.
func (n *Network) Disable() { n.setEnabled(false) }

// Enable ends the effect of Disable. Rules then count requests and apply faults again.
func (n *Network) Enable() { n.setEnabled(true) }

func (n *Network) setEnabled(armed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.enabled = armed
}

// Kill cuts the network permanently: from now on, every request fails. The faults [KillBefore] and [KillAfter] do the
// same.
func (n *Network) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
	n.closeKilled()
}

// Killed returns a channel that is closed when the network has been cut. If the fault [KillAfter] cuts the network, the
// channel is closed after the request that the fault hits has taken effect.
func (n *Network) Killed() <-chan struct{} { return n.killed }

// closeKilled closes the channel. The caller holds the lock.
func (n *Network) closeKilled() {
	select {
	case <-n.killed:
	default:
		close(n.killed)
	}
}

// complete is called when the test ends. It ends all delays and logs the report. If a rule had no effect and is not
// Optional, or if there were fewer hits than Scenario.MinHits, end fails the test.
func (n *Network) complete() {
	n.t.Helper()
	n.mu.Lock()
	n.enabled, n.testEnded = false, true
	n.mu.Unlock()
	close(n.ended)
	report := n.Report()
	n.t.Logf("faults:\n%s", report)
	for _, idle := range report.ListUnusedRules() {
		n.t.Errorf("faults: rule %d (%s) had no effect: %d requests matched it", idle.Number, idle.Name, idle.Matched)
	}
	if hits := report.SumHits(); hits < n.minHits {
		n.t.Errorf("faults: only %d requests were hit, want at least %d", hits, n.minHits)
	}
}

// errKilled is returned for every request after the network was cut.
var errKilled = errors.New("the process was killed")

// networkTransport is the transport of one client.
type networkTransport struct {
	network *Network
	next    http.RoundTripper
}

// RoundTrip applies the scenario to the request.
func (l *networkTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{network: l.network, next: l.next, req: req}
	var counted bool
	x.about, counted = requestOf(req)
	if err := l.network.selectRule(x, counted); err != nil {
		x.closeUnsent()
		return nil, err
	}
	if x.rule == nil {
		return x.send()
	}
	defer x.closeUnsent()
	return x.rule.Fault.apply(x)
}

// exchange is one request in progress.
type exchange struct {
	network *Network
	next    http.RoundTripper
	req     *http.Request
	about   Request
	rule    *ruleState
	nth     int         // the request is the nth request that the rule matches
	point   *pointState // nil if the request is not surveyed
	sent    bool
}

// send sends the request and returns the response.
func (x *exchange) send() (*http.Response, error) {
	x.sent = true
	res, err := x.next.RoundTrip(x.req)
	if err != nil {
		return nil, err
	}
	if x.network.needsHistory && x.about.isRead() {
		if err := x.network.history.record(x.req, res); err != nil {
			return nil, errors.Join(err, res.Body.Close()) // return either a response or an error, never both
		}
	}
	if x.point != nil {
		x.updatePoint(res)
	}
	return res, nil
}

// closeUnsent closes the body of a request that was not sent.
func (x *exchange) closeUnsent() {
	if !x.sent && x.req.Body != nil {
		_ = x.req.Body.Close()
	}
}

// recordHit records that the fault had an effect on this request.
func (x *exchange) recordHit() { x.network.recordHit(x) }

// recordMiss records that the fault had no effect on this request.
func (x *exchange) recordMiss() { x.network.recordMiss(x.rule) }

// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Rule applies a fault to requests that match. By default, it applies the fault once, to the first matching request.
type Rule struct {
	// Name is the name of the rule in the report. The default is a description of the fault.
	Name string
	// Match selects requests. The rule counts them.
	Match Match
	// Nth is the number, counted from 1, of the first matching request to which the fault is applied. The default is 1.
	Nth int
	// Times is the number of times that the fault is applied, or [Always]. The default is 1.
	Times int
	// Chance is the probability that the fault is applied to a matching request. It is used from request number Nth on,
	// until the limit Times is reached. The Seed of the scenario determines the random numbers. Zero means that the fault
	// is applied to every request.
	Chance float64
	// Fault is the fault that the rule applies. A rule with the zero Fault only counts requests.
	Fault Fault
	// Optional means that the rule may have no effect. If any other rule has no effect, the test fails.
	Optional bool
}

// Always is the value of Times for a rule without a limit.
const Always = -1

// check returns an error for an invalid rule.
func (r *Rule) check() error {
	if r.Nth < 0 || r.Times < Always || r.Chance < 0 || r.Chance > 1 {
		return errors.New("nth, times and chance must not be negative, and chance must be at most 1")
	}
	switch r.Fault.verb {
	case "", r.Match.Verb:
	case ReadVerb:
		if r.Match.Verb != "" && !(Request{Verb: r.Match.Verb}).isRead() {
			return fmt.Errorf("%s applies to reads, not to %s", r.Fault, r.Match.Verb)
		}
	default:
		if r.Match.Verb != "" {
			return fmt.Errorf("%s applies to %s, not to %s", r.Fault, r.Fault.verb, r.Match.Verb)
		}
	}
	r.Match.Verb = cmp.Or(r.Match.Verb, r.Fault.verb)
	if r.Name == "" {
		r.Name = r.Fault.String()
	}
	r.Nth = max(r.Nth, 1)
	if r.Times == 0 {
		r.Times = 1
	}
	return nil
}

// These values of Match.Verb stand for several verbs.
const (
	// ReadVerb stands for get and list.
	ReadVerb = "read"
	// WriteVerb stands for all verbs that may change something.
	WriteVerb = "write"
)

// NoSubresource as the Subresource of a Match selects requests without a subresource.
const NoSubresource = "-"

// Match selects requests. An empty field matches every value. However, watches, discovery requests, and requests about
// events and leases must be selected explicitly. To select watches, set Verb to "watch". To select requests about
// events or leases, set Resource to "events" or "leases". To select all kinds of requests, set All.
type Match struct {
	// Verb is a verb of a [Request], "watch", [ReadVerb] or [WriteVerb]. If Verb is empty, the Match selects all verbs
	// that the fault of the rule supports. For example, [Stale] supports only reads.
	Verb string
	// Resource and Subresource are spelled as in the URL. See also [NoSubresource].
	Resource, Subresource string
	// Namespace and Name identify the object. A list, a watch and a create have no name.
	Namespace, Name string
	// All makes the Match select every request that the other fields match, including watches, discovery requests, and
	// requests about events and leases.
	All bool
	// Where is an additional condition. It may be nil, and must not block.
	Where func(Request) bool
}

// matches reports whether m selects a request. If a Counter ignores the request, for example because it is a watch,
// counted is false.
func (m Match) matches(r Request, counted bool) bool {
	if !counted && !m.All && !m.isExplicit(r) {
		return false
	}
	return m.matchesVerb(r) && matchesValue(m.Resource, r.Resource) && m.matchesSubresource(r) &&
		matchesValue(m.Namespace, r.Namespace) && matchesValue(m.Name, r.Name) && (m.Where == nil || m.Where(r))
}

// isExplicit reports whether m explicitly selects a request that a Counter ignores. For requests about events and
// leases, m must contain the resource. For watches, m must contain the verb "watch".
func (m Match) isExplicit(r Request) bool {
	switch r.Resource {
	case "":
		return false
	case "events", "leases":
		return m.Resource == r.Resource && (r.Verb != watchVerb || m.Verb == watchVerb)
	}
	return r.Verb == watchVerb && m.Verb == watchVerb
}

const watchVerb = "watch"

func (m Match) matchesVerb(r Request) bool {
	switch m.Verb {
	case ReadVerb:
		return r.isRead()
	case WriteVerb:
		return r.Verb != "" && r.Verb != watchVerb && !r.isRead()
	}
	return matchesValue(m.Verb, r.Verb)
}

func (m Match) matchesSubresource(r Request) bool {
	if m.Subresource == NoSubresource {
		return r.Subresource == ""
	}
	return matchesValue(m.Subresource, r.Subresource)
}

func matchesValue(want, have string) bool { return want == "" || want == have }

// ruleState is a rule of a running scenario.
type ruleState struct {
	Rule
	number   int
	matched  int
	reserved int // number of hits, plus the number of requests in progress that the fault may still hit
	hits     int
}

// randomKey identifies a separate sequence of random numbers.
type randomKey struct {
	rule  int
	about Request
}

// selectRule counts a request, and selects the rule that applies its fault to the request, if there is one.
func (n *Network) selectRule(x *exchange, counted bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return errKilled
	}
	if !n.enabled {
		return nil
	}
	if n.recorder != nil {
		x.point = n.recorder.add(x.about)
	}
	for _, rule := range n.rules {
		if !rule.Match.matches(x.about, counted) {
			continue
		}
		rule.matched++
		if n.shouldApply(rule, x.about) && x.rule == nil {
			x.rule, x.nth = rule, rule.matched
		}
	}
	if x.rule != nil {
		x.rule.reserved++
		n.dead = x.rule.Fault.killsNetwork
	}
	return nil
}

// shouldApply reports whether a rule should apply its fault to a request.
func (n *Network) shouldApply(rule *ruleState, about Request) bool {
	if rule.Fault.apply == nil {
		return false
	}
	return rule.matched >= rule.Nth && (rule.Times == Always || rule.reserved < rule.Times) && n.selectRandomly(rule, about)
}

// selectRandomly decides, with the probability Chance, whether a rule applies its fault to a request. It uses the next
// random number in the sequence for the rule and the Request.
func (n *Network) selectRandomly(rule *ruleState, about Request) bool {
	if rule.Chance == 0 {
		return true
	}
	key := randomKey{rule.number, about}
	n.randomCounts[key]++
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %q %d", rule.number, about, n.randomCounts[key])
	return rand.New(rand.NewPCG(n.seed, h.Sum64())).Float64() < rule.Chance //nolint:gosec // faults need to be repeatable, not secret
}

// Chaos returns a random scenario. A write may fail before or after it takes effect, fail with a conflict or because of
// an unavailable webhook, or be delayed. A read may fail, be delayed, or return an old response. A watch may be cut or
// stalled. All faults are temporary, so a job may take longer but should succeed. Chaos does not use WebhookDenied,
// because a deployer may treat a denied request as a permanent failure.
//
// Each fault is applied to a matching request with the probability chance. Match.Verb is ignored. The test fails if no
// fault hits. Call Disable before you check the result through the network.
func Chaos(seed uint64, match Match, chance float64) Scenario {
	s := Scenario{Seed: seed, MinHits: 1}
	add := func(verb string, faults ...Fault) {
		for _, f := range faults {
			rule := Rule{Name: verb + ": " + f.String(), Match: match, Times: Always, Chance: chance, Fault: f, Optional: true}
			rule.Match.Verb = verb
			s.Rules = append(s.Rules, rule)
		}
	}
	add(WriteVerb, Conflict(), Reset(), DropResponse(), WebhookFailed("chaos.example.com"), Delay(chaosDelay))
	add(ReadVerb, Status(503, "ServiceUnavailable"), Stale(1), Delay(chaosDelay))
	add(watchVerb, DropWatch(chaosEvents), DelayWatchEvents(0, chaosDelay))
	return s
}

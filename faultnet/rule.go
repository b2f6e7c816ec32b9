// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Rule applies a fault to some of the requests that match it. By default it applies the fault to the first one, once.
type Rule struct {
	// Name is the name of the rule in the report. The default is a description of its fault.
	Name string
	// Match selects the requests that the rule counts.
	Match Match
	// Nth is the number of the first request to which the fault is applied, from 1. The default is 1.
	Nth int
	// Times is how often the fault is applied, or [Always]. The default is 1.
	Times int
	// Chance is the probability with which the fault is applied to each request, from the Nth on, by the seed of the
	// scenario. By default it is applied to each until it has been applied Times times.
	Chance float64
	// Fault is what the rule does. With the zero Fault the rule only counts.
	Fault Fault
	// Optional rules may end without having had an effect.
	Optional bool
}

// Always as the Times of a rule makes it act without end.
const Always = -1

// check returns an error for an invalid rule.
func (r *Rule) check() error {
	if r.Nth < 0 || r.Times < Always || r.Chance < 0 || r.Chance > 1 {
		return errors.New("nth, times and chance must not be negative, chance not more than 1")
	}
	switch r.Fault.verb {
	case "", r.Match.Verb:
	case ReadVerb:
		if r.Match.Verb != "" && !(Request{Verb: r.Match.Verb}).isRead() {
			return fmt.Errorf("%s is for reads, not for %s", r.Fault, r.Match.Verb)
		}
	default:
		if r.Match.Verb != "" {
			return fmt.Errorf("%s is for %s, not for %s", r.Fault, r.Fault.verb, r.Match.Verb)
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

// Verbs of a Match that stand for several verbs.
const (
	// ReadVerb stands for get and list.
	ReadVerb = "read"
	// WriteVerb stands for all verbs that may change something.
	WriteVerb = "write"
)

// NoSubresource as the Subresource of a Match selects requests without a subresource.
const NoSubresource = "-"

// Match selects requests. Empty fields match everything, with the same exceptions as for a [Counter]: watches match
// only the verb "watch", events and leases match only if Resource names them, and discovery never matches.
type Match struct {
	// Verb is that of a [Request], or "watch", [ReadVerb] or [WriteVerb]. The default is the verb to which the fault of
	// the rule applies, if it does not apply to every request.
	Verb string
	// Resource and Subresource are as in the URL. See also [NoSubresource].
	Resource, Subresource string
	// Namespace and Name identify the object. A list, a watch and a create have no name.
	Namespace, Name string
	// All removes the exceptions: every request that the other fields match is selected, including discovery if they
	// are empty.
	All bool
	// Where reports whether a request is selected. If it is nil, every request is. It must not block.
	Where func(Request) bool
}

// matches reports whether a request is selected.
func (m Match) matches(r Request, counted bool) bool {
	if !counted && !m.All && !m.named(r) {
		return false
	}
	return m.verb(r) && fits(m.Resource, r.Resource) && m.subresource(r) &&
		fits(m.Namespace, r.Namespace) && fits(m.Name, r.Name) && (m.Where == nil || m.Where(r))
}

// named reports whether m names a request that is not counted by default.
func (m Match) named(r Request) bool {
	switch r.Resource {
	case "":
		return false
	case "events", "leases":
		return m.Resource == r.Resource && (r.Verb != watchVerb || m.Verb == watchVerb)
	}
	return r.Verb == watchVerb && m.Verb == watchVerb
}

const watchVerb = "watch"

func (m Match) verb(r Request) bool {
	switch m.Verb {
	case ReadVerb:
		return r.isRead()
	case WriteVerb:
		return r.Verb != "" && r.Verb != watchVerb && !r.isRead()
	}
	return fits(m.Verb, r.Verb)
}

func (m Match) subresource(r Request) bool {
	if m.Subresource == NoSubresource {
		return r.Subresource == ""
	}
	return fits(m.Subresource, r.Subresource)
}

func fits(want, have string) bool { return want == "" || want == have }

// ruleState is a rule of a running scenario.
type ruleState struct {
	Rule
	number  int
	matched int
	taken   int // hits, and requests in progress that may become one
	hits    int
}

// diceKey identifies the requests that share random numbers.
type diceKey struct {
	rule  int
	about Request
}

// decide counts a request and assigns it the rule that handles it, if any.
func (n *Network) decide(x *exchange, counted bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return errKilled
	}
	if !n.armed {
		return nil
	}
	if n.survey != nil {
		x.point = n.survey.add(x.about)
	}
	for _, rule := range n.rules {
		if !rule.Match.matches(x.about, counted) {
			continue
		}
		rule.matched++
		if n.due(rule, x.about) && x.rule == nil {
			x.rule, x.nth = rule, rule.matched
		}
	}
	if x.rule != nil {
		x.rule.taken++
		n.dead = x.rule.Fault.kills
	}
	return nil
}

// due reports whether a rule acts on a request.
func (n *Network) due(rule *ruleState, about Request) bool {
	if rule.Fault.inflict == nil {
		return false
	}
	return rule.matched >= rule.Nth && (rule.Times == Always || rule.taken < rule.Times) && n.throw(rule, about)
}

// throw draws a random number for a kind of request.
func (n *Network) throw(rule *ruleState, about Request) bool {
	if rule.Chance == 0 {
		return true
	}
	key := diceKey{rule.number, about}
	n.dice[key]++
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %q %d", rule.number, about, n.dice[key])
	return rand.New(rand.NewPCG(n.seed, h.Sum64())).Float64() < rule.Chance //nolint:gosec // faults need to be repeatable, not secret
}

// Chaos returns a random scenario. Each write may fail before or after it took effect, meet a conflict or an
// unavailable webhook, or be late. Each read may fail, be late, or get an old response. Each watch may be cut or
// stalled. All faults are temporary: a job may take longer but should succeed. Denied is not used, because a deployer
// may treat it as final.
//
// chance is the probability of each fault for a request that matches; Match.Verb is not used. At least one fault must
// hit. Call Disarm before you check the result through the network.
func Chaos(seed uint64, match Match, chance float64) Scenario {
	s := Scenario{Seed: seed, AtLeast: 1}
	add := func(verb string, faults ...Fault) {
		for _, f := range faults {
			rule := Rule{Name: verb + ": " + f.String(), Match: match, Times: Always, Chance: chance, Fault: f, Optional: true}
			rule.Match.Verb = verb
			s.Rules = append(s.Rules, rule)
		}
	}
	add(WriteVerb, Conflict(), Reset(), LostAnswer(), BrokenWebhook("chaos.example.com"), Delay(chaosDelay))
	add(ReadVerb, Status(503, "ServiceUnavailable"), Stale(1), Delay(chaosDelay))
	add(watchVerb, CutWatch(chaosEvents), StallWatch(0, chaosDelay))
	return s
}

// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Rule does something to some of the requests that match it. The zero values
// of Nth, Times and Chance mean: to the first one, once.
type Rule struct {
	// Name is for the report. Default: what the rule does.
	Name string
	// Match says which requests the rule counts.
	Match Match
	// Nth is the first of them that it acts on, from 1. Default: 1.
	Nth int
	// Times is how often it acts; [Always]: without end. Default: 1.
	Times int
	// Chance is how probable it is that the rule acts on a request, from the Nth on, by the seed of the
	// scenario. Default: it acts on each, until it has acted Times times.
	Chance float64
	// Fault is what it does. The zero Fault does nothing: the rule only counts.
	Fault Fault
	// Optional rules may end without having done anything.
	Optional bool
}

// Always is the Times of a rule that never stops.
const Always = -1

// check finds mistakes.
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

// Verbs of a Match that stand for several ones.
const (
	// ReadVerb is get and list.
	ReadVerb = "read"
	// WriteVerb is all that may change something.
	WriteVerb = "write"
)

// NoSubresource is the Subresource of a Match of requests that have none.
const NoSubresource = "-"

// Match says which requests a rule is for. Empty fields match everything, with
// the exceptions that a [Counter] makes: watches only match the verb "watch",
// events and leases only when Resource names them, and discovery never.
type Match struct {
	// Verb is that of a [Request], or "watch", [ReadVerb] or [WriteVerb]. Default: what the fault of the
	// rule is for, if it is not for every request.
	Verb string
	// Resource and Subresource are as in the URL; see also [NoSubresource].
	Resource, Subresource string
	// Namespace and Name say which object. A list, a watch and a create have no name.
	Namespace, Name string
	// All lifts the exceptions: what the other fields match is matched, discovery too when they are empty.
	All bool
	// Where reports whether the rule is for a request. The default is every request. It must not block.
	Where func(Request) bool
}

// matches reports whether a request is one of those.
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
	taken   int // hits, and what may still become one
	hits    int
}

// diceKey names the requests that share dice.
type diceKey struct {
	rule  int
	about Request
}

// decide counts a request and gives it the rule that has it, if any.
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

// throw throws the dice of a kind of request.
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

// Chaos is a scenario by seed: each write may fail before or after it took
// effect, meet a conflict or a webhook that is away, or be late; each read may
// fail or be answered late or with an old answer; each watch may be cut or
// stalled. All of it passes: a job may take longer, but it should end well. So
// nothing is Denied, which a deployer may take for final.
//
// chance is how probable each of these is for a request that matches; Match.Verb
// is not used. At least one fault must hit. Disarm before you look at what came out, if you look through the network.
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

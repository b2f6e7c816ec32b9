// SPDX-License-Identifier: Apache-2.0

package faultnet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// Injected describes one fault that hit.
type Injected struct {
	// Rule is the number of the rule, from 1. Fault describes what it did.
	Rule  int
	Fault string
	// Request is the request that the fault hit. Nth is its number among the requests that match the rule, from 1.
	Request Request
	Nth     int
}

// RuleReport describes the effect of a rule.
type RuleReport struct {
	// Number is the number of the rule in the scenario, from 1.
	Number int
	// Name is the name of the rule.
	Name string
	// Matched is the number of requests that the rule counted. Hits is the number of those to which it applied its
	// fault.
	Matched, Hits int
	// Optional is set for rules that may have no hits, and for rules that only count.
	Optional bool
}

// Report describes what a scenario did.
type Report struct {
	// Rules has the rules in the order of the scenario.
	Rules []RuleReport
	// Injected has the first faults that hit, in order, at most 1000.
	Injected []Injected
	// Points has the requests that were made, in order, if the scenario has a Survey.
	Points []Point
}

// maxInjected is the maximum length of Report.Injected.
const maxInjected = 1000

// Report returns what was done so far.
func (n *Network) Report() Report {
	n.mu.Lock()
	defer n.mu.Unlock()
	report := Report{Injected: slices.Clone(n.injected), Points: n.survey.list()}
	for _, r := range n.rules {
		optional := r.Optional || r.Fault.inflict == nil
		report.Rules = append(report.Rules, RuleReport{Number: r.number, Name: r.Name, Matched: r.matched, Hits: r.hits, Optional: optional})
	}
	return report
}

// Idle returns the rules that should have had an effect and did not.
func (r Report) Idle() []RuleReport {
	return slices.DeleteFunc(slices.Clone(r.Rules), func(rule RuleReport) bool { return rule.Optional || rule.Hits > 0 })
}

// Hits returns the total number of faults that hit.
func (r Report) Hits() int {
	hits := 0
	for _, rule := range r.Rules {
		hits += rule.Hits
	}
	return hits
}

// String returns one line per rule, for example "2 of 5 requests: conflict".
func (r Report) String() string {
	lines := make([]string, 0, len(r.Rules))
	for _, rule := range r.Rules {
		lines = append(lines, fmt.Sprintf("%d of %d requests: %s", rule.Hits, rule.Matched, rule.Name))
	}
	return strings.Join(lines, "\n")
}

// hit records that a rule had an effect. It logs with the lock held, so that it does not log after the end of the test.
func (n *Network) hit(x *exchange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rule, about := x.rule, x.about
	rule.hits++
	if len(n.injected) < maxInjected {
		n.injected = append(n.injected, Injected{Rule: rule.number, Fault: rule.Fault.String(), Request: about, Nth: x.nth})
	}
	if n.over {
		return
	}
	n.log.Info("fault", "rule", rule.number, "name", rule.Name, "fault", rule.Fault.String(), "hit", rule.hits,
		"verb", about.Verb, "resource", about.Resource, "subresource", about.Subresource,
		"namespace", about.Namespace, "object", about.Name)
}

// miss records that a rule had no effect.
func (n *Network) miss(rule *ruleState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rule.taken--
}

// testLog returns a logger that writes to the log of a test.
func testLog(t testing.TB) logr.Logger {
	return funcr.New(func(_, args string) { t.Log(args) }, funcr.Options{})
}

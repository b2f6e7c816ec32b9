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

// Injected is one fault that hit.
type Injected struct {
	// Rule is the number of the rule, from 1, and Fault what it did.
	Rule  int
	Fault string
	// Request is what it did it to, and Nth which of the requests that match the rule it was, from 1.
	Request Request
	Nth     int
}

// RuleReport tells what became of a rule.
type RuleReport struct {
	// Number is that of the rule in the scenario, from 1.
	Number int
	// Name is that of the rule.
	Name string
	// Matched is how many requests it counted, Hits how many of them it did its fault to.
	Matched, Hits int
	// Optional and counting rules may have no hits.
	Optional bool
}

// Report tells what a scenario did.
type Report struct {
	// Rules are in the order of the scenario.
	Rules []RuleReport
	// Injected are the first faults that hit, in order, 1000 at most.
	Injected []Injected
	// Points are the requests that were made, in order, if the scenario has a Survey.
	Points []Point
}

// maxInjected bounds Report.Injected.
const maxInjected = 1000

// Report tells what was done so far. It is the caller's own.
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

// Idle returns the rules that should have done something and did not.
func (r Report) Idle() []RuleReport {
	return slices.DeleteFunc(slices.Clone(r.Rules), func(rule RuleReport) bool { return rule.Optional || rule.Hits > 0 })
}

// Hits is how many faults hit in all.
func (r Report) Hits() int {
	hits := 0
	for _, rule := range r.Rules {
		hits += rule.Hits
	}
	return hits
}

// String has a line for each rule: "2 of 5 requests: conflict".
func (r Report) String() string {
	lines := make([]string, 0, len(r.Rules))
	for _, rule := range r.Rules {
		lines = append(lines, fmt.Sprintf("%d of %d requests: %s", rule.Hits, rule.Matched, rule.Name))
	}
	return strings.Join(lines, "\n")
}

// hit notes that a rule did what it should. It logs with the lock held: not after the end of the test.
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

// miss gives a rule its chance back.
func (n *Network) miss(rule *ruleState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rule.taken--
}

// testLog logs to a test.
func testLog(t testing.TB) logr.Logger {
	return funcr.New(func(_, args string) { t.Log(args) }, funcr.Options{})
}

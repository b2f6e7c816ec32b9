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

// Injected describes a fault that has hit a request.
type Injected struct {
	// Rule is the number of the rule in the scenario, from 1. Fault describes the fault.
	Rule  int
	Fault string
	// Request describes the request that the fault has hit. Nth is the number of this request among the requests that the
	// rule matches, counted from 1.
	Request Request
	Nth     int
}

// RuleReport describes the effect of a rule.
type RuleReport struct {
	// Number is the number of the rule in the scenario, from 1.
	Number int
	// Name is the name of the rule.
	Name string
	// Matched is the number of requests that the rule matched. Hits is how many of these requests the fault has hit.
	Matched, Hits int
	// Optional is true if the rule may end without a hit, or if the rule only counts requests.
	Optional bool
}

// Report describes the effect of a scenario.
type Report struct {
	// Rules contains a report for each rule, in the order of the scenario.
	Rules []RuleReport
	// Injected contains the first 1000 faults that have hit a request, in order.
	Injected []Injected
	// Points contains the requests of the run, in order, if the scenario has RecordPoints set.
	Points []Point
}

// maxInjected is the maximum length of Report.Injected.
const maxInjected = 1000

// Report returns a report about what has happened so far.
func (n *Network) Report() Report {
	n.mu.Lock()
	defer n.mu.Unlock()
	report := Report{Injected: slices.Clone(n.injected), Points: n.recorder.list()}
	for _, r := range n.rules {
		optional := r.Optional || r.Fault.apply == nil
		report.Rules = append(report.Rules, RuleReport{Number: r.number, Name: r.Name, Matched: r.matched, Hits: r.hits, Optional: optional})
	}
	return report
}

// ListUnusedRules lists the rules that had no effect and are not optional.
func (r Report) ListUnusedRules() []RuleReport {
	return slices.DeleteFunc(slices.Clone(r.Rules), func(rule RuleReport) bool { return rule.Optional || rule.Hits > 0 })
}

// SumHits returns the total number of faults that hit.
func (r Report) SumHits() int {
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

// recordHit records that a fault had an effect. It logs while it holds the lock, so that it never logs after the end of
// the test, which would panic.
func (n *Network) recordHit(x *exchange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rule, about := x.rule, x.about
	rule.hits++
	if len(n.injected) < maxInjected {
		n.injected = append(n.injected, Injected{Rule: rule.number, Fault: rule.Fault.String(), Request: about, Nth: x.nth})
	}
	if n.testEnded {
		return
	}
	n.log.Info("injected a fault", "rule", rule.number, "name", rule.Name, "fault", rule.Fault.String(), "hit", rule.hits,
		"verb", about.Verb, "resource", about.Resource, "subresource", about.Subresource,
		"namespace", about.Namespace, "object", about.Name)
}

// recordMiss records that a fault had no effect.
func (n *Network) recordMiss(rule *ruleState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rule.reserved--
}

// newTestLogger returns a logger that writes to the log of a test.
func newTestLogger(t testing.TB) logr.Logger {
	return funcr.New(func(_, args string) { t.Log(args) }, funcr.Options{})
}

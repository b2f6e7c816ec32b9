// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/faultnet"
)

const (
	// workers is the number of runs at the same time.
	workers = 8
	// tries is the maximum number of runs for one fault. The number of requests varies between runs, so the first run
	// may not reach the point of the fault.
	tries = 4
	// enough is the number of violations after which a subject is no longer tried, because further runs would show
	// the same violations.
	enough = 10
)

// trial is a fault at a certain point of the scenario. A point is one request.
type trial struct {
	point faultnet.Point
	fault faultnet.Fault
}

// result contains the results of all trials of a subject.
type result struct {
	subject *subject
	begin   time.Time
	took    time.Duration

	writes, reads, pasts, watches int // numbers of points
	trials                        int // number of all possible trials
	chosen                        int // number of trials that were selected
	kills, stales, disturbed      int // numbers of faults that hit their point
	runs                          int
	vain                          int // number of runs whose fault did not hit its point
	missed                        []string

	mu     sync.Mutex
	faults []string
}

// runWithoutFaults runs the scenario once without faults, and returns all trials at the points of this run.
func (r *result) runWithoutFaults(ctx context.Context) []trial {
	report, faults := r.subject.runScenario(ctx, faultnet.Scenario{RecordPoints: true, Alias: getStableName})
	r.runs, r.faults = 1, faults
	var trials []trial
	for _, p := range report.Points {
		switch {
		case p.IsWrite():
			r.writes++
		case p.IsWatch():
			r.watches++
		default:
			r.reads++
			if p.ResponseChanged {
				r.pasts++
			}
		}
		for _, f := range p.SelectFaults() {
			trials = append(trials, trial{p, f})
		}
	}
	r.trials = len(trials)
	return trials
}

// getStableName returns a stable name for the object of a request. The end of a versioned ConfigMap's name depends on
// the content and on the item. Therefore, this name is not stable.
func getStableName(r faultnet.Request) string {
	if strings.HasPrefix(r.Name, "item-settings-") {
		return "item-settings-*"
	}
	return r.Name
}

// selectRandom returns n random trials, or all trials if there are at most n.
func selectRandom(trials []trial, n int, seed uint64) []trial {
	dice := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it is to be repeatable, not secret
	dice.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	return trials[:min(n, len(trials))]
}

// runTrials runs the trials, several at the same time.
func (r *result) runTrials(ctx context.Context, trials []trial) {
	r.chosen = len(trials)
	todo := make(chan trial, len(trials))
	for _, t := range trials {
		todo <- t
	}
	close(todo)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			defer GinkgoRecover()
			for t := range todo {
				r.runTrial(ctx, t)
			}
		})
	}
	running.Wait()
	r.took = time.Since(r.begin)
}

// runTrial runs the scenario with the fault of a trial until the fault hits its point, at most `tries` times.
// Violations also count if they are found in a run in which the fault does not hit its point.
func (r *result) runTrial(ctx context.Context, t trial) {
	for range tries {
		if ctx.Err() != nil || r.hasFailed() {
			return
		}
		rule := t.point.NewRule(t.fault)
		rule.Optional = true // the loop handles rules that have no effect
		report, faults := r.subject.runScenario(ctx, faultnet.Scenario{Rules: []faultnet.Rule{rule}})
		if hit := t.point.WasHit(report); r.add(t, hit, faults) {
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missed = append(r.missed, fmt.Sprintf("%s: %s", t.point, t.fault))
}

// hasFailed reports whether the subject has so many violations that no more of its trials are run.
func (r *result) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.faults) >= enough
}

// add adds the result of a run to the totals. It returns true if the fault hit its point.
func (r *result) add(t trial, hit bool, faults []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs++
	for _, fault := range faults {
		r.faults = append(r.faults, fmt.Sprintf("%s: %s (hit: %t): %s", t.point, t.fault, hit, fault))
	}
	switch {
	case !hit:
		r.vain++
	case t.point.IsWrite():
		r.kills++
	case t.point.IsWatch():
		r.disturbed++
	default:
		r.stales++
	}
	return hit
}

// printTable prints a table of the results.
func printTable(w io.Writer, results []*result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	lines := []string{"subject\twrites\tcrash points\tkilled\treads\twith a past\tstale\twatches\tdisturbed\tnot reached\ttrials\tmade\truns\tin vain\tfaults\ttime\t"}
	sum := &result{subject: &subject{name: "all"}}
	for _, r := range results {
		lines = append(lines, r.formatRow())
		sum.writes, sum.kills, sum.reads, sum.pasts, sum.stales = sum.writes+r.writes, sum.kills+r.kills, sum.reads+r.reads, sum.pasts+r.pasts, sum.stales+r.stales
		sum.watches, sum.disturbed, sum.missed = sum.watches+r.watches, sum.disturbed+r.disturbed, append(sum.missed, r.missed...)
		sum.trials, sum.chosen, sum.runs, sum.vain = sum.trials+r.trials, sum.chosen+r.chosen, sum.runs+r.runs, sum.vain+r.vain
		sum.faults, sum.took = append(sum.faults, r.faults...), sum.took+r.took
	}
	if _, err := fmt.Fprintln(table, "\n"+strings.Join(append(lines, sum.formatRow()), "\n")); err != nil {
		return err
	}
	return table.Flush()
}

// formatRow returns the row of a subject.
func (r *result) formatRow() string {
	cells := []any{
		r.subject.name, r.writes, 2 * r.writes, r.kills, r.reads, r.pasts, r.stales, r.watches, r.disturbed, len(r.missed), r.trials, r.chosen,
		r.runs, r.vain, len(r.faults), r.took.Round(time.Second),
	}
	return fmt.Sprintf(strings.Repeat("%v\t", len(cells)), cells...)
}

// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/deployerlib/deployertest"
)

const (
	// workers is how many runs go on at the same time.
	workers = 8
	// tries is how often a point is tried until the fault hits it. The number of requests may differ a little from run
	// to run.
	tries = 4
)

// trial is a fault at a point of a subject.
type trial struct {
	subject *subject
	point   deployertest.Point
	fault   deployertest.Fault
}

func (t trial) String() string { return fmt.Sprintf("%s: %s: %s", t.subject.name, t.point, t.fault) }

// result is what became of a subject.
type result struct {
	writes, reads, pasts, watches    int // points
	trials                           int // that there are
	kills, stales, replays           int // faults that hit their point
	runs                             int
	again                            int // runs that came by without their point, so that another one followed
	missed, faults                   []string
}

// survey tells the story once, undisturbed, and returns all trials at its points.
func survey(ctx context.Context, s *subject, into *result) []trial {
	report, faults := s.try(ctx, deployertest.Scenario{Survey: true, Alias: alias})
	into.runs++
	for _, fault := range faults {
		into.faults = append(into.faults, s.name+", undisturbed: "+fault)
	}
	var trials []trial
	for _, p := range report.Points {
		switch {
		case p.IsWrite():
			into.writes++
		case p.IsWatch():
			into.watches++
		default:
			into.reads++
			if p.Past {
				into.pasts++
			}
		}
		for _, f := range p.Faults() {
			trials = append(trials, trial{s, p, f})
		}
	}
	into.trials = len(trials)
	return trials
}

// alias: the end of the name of a versioned ConfigMap is made of its content and its item.
func alias(r deployertest.Request) string {
	if strings.HasPrefix(r.Name, "item-settings-") {
		return "item-settings-*"
	}
	return r.Name
}

// sample picks so many trials of each subject, at random.
func sample(trials []trial, each int, seed uint64) []trial {
	dice := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it is to be repeatable, not secret
	dice.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	picked := map[*subject]int{}
	return slices.DeleteFunc(trials, func(t trial) bool {
		picked[t.subject]++
		return picked[t.subject] > each
	})
}

// sweep makes all trials, some at a time.
func sweep(ctx context.Context, trials []trial, results map[*subject]*result) {
	todo := make(chan trial, len(trials))
	for _, t := range trials {
		todo <- t
	}
	close(todo)
	var mu sync.Mutex
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			defer GinkgoRecover()
			for t := range todo {
				done := t.make(ctx)
				mu.Lock()
				results[t.subject].add(t, done)
				mu.Unlock()
			}
		})
	}
	running.Wait()
}

// made is what became of a trial.
type made struct {
	hit    bool
	runs   int
	faults []string
}

// make tells the story with the fault, again and again until it hits. Faults are found in runs that it misses, too.
func (t trial) make(ctx context.Context) made {
	var out made
	for !out.hit && out.runs < tries && ctx.Err() == nil {
		rule := t.point.Rule(t.fault)
		rule.Optional = true // a miss is looked at here
		report, faults := t.subject.try(ctx, deployertest.Scenario{Rules: []deployertest.Rule{rule}})
		out.runs++
		out.hit = t.point.Hit(report)
		for _, fault := range faults {
			out.faults = append(out.faults, fmt.Sprintf("%s (hit: %t): %s", t, out.hit, fault))
		}
	}
	return out
}

func (r *result) add(t trial, m made) {
	r.runs += m.runs
	r.faults = append(r.faults, m.faults...)
	if !m.hit {
		r.missed = append(r.missed, t.String())
		r.again += m.runs
		return
	}
	r.again += m.runs - 1
	switch {
	case t.point.IsWrite():
		r.kills++
	case t.point.IsWatch():
		r.replays++
	default:
		r.stales++
	}
}

// print writes the table.
func print(w io.Writer, all []*subject, results map[*subject]*result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "subject\twrites\tcrash points\tkilled\treads\twith a past\tstale\twatches\tdisturbed\tnot reached\truns\tof them in vain\tfaults")
	for _, s := range all {
		r := results[s]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n",
			s.name, r.writes, 2*r.writes, r.kills, r.reads, r.pasts, r.stales, r.watches, r.replays, len(r.missed), r.runs, r.again, len(r.faults))
	}
	return table.Flush()
}

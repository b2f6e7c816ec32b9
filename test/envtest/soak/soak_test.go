// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
)

// killerDice identifies the random numbers that determine when the leader is killed. The numbers for the actors begin
// with 1.
const killerDice = 0

// suiteContext is the context of the spec. The replicas use it.
var suiteContext context.Context

// result contains the numbers that the test prints at the end.
type result struct {
	seed                   uint64
	items                  int
	operations, jobs       int64
	versions, gaps         int
	kills, losses, started int
	hits                   int
	outages                []string
	trouble, rest          time.Duration
	goroutines, after      int
	heap, heapAfter        int64
}

// String returns the result as one line.
func (r result) String() string {
	return fmt.Sprintf("seed %d: %d items, %d operations, %d jobs, %d versions (watch begun %d times); "+
		"%d leaders killed, %d leases lost, %d replicas started; %d requests disturbed, %s; %s of trouble, at rest after %s; "+
		"goroutines %d before and %d after, heap %d KiB and %d KiB",
		r.seed, r.items, r.operations, r.jobs, r.versions, r.gaps, r.kills, r.losses, r.started, r.hits, strings.Join(r.outages, ", "),
		r.trouble.Round(time.Second), r.rest.Round(time.Second), r.goroutines, r.after, r.heap>>10, r.heapAfter>>10)
}

var _ = Describe("Two replicas under permanent faults", func() {
	It("the replicas end all jobs and become idle after the faults [C14]", func(ctx SpecContext) {
		suiteContext = ctx
		w := newEnv(ctx, getSeed(), *count)
		GinkgoWriter.Println("seed", w.seed)
		w.history = newHistory(w.Client, w.Namespace)
		path, err := cp.WriteKubeconfig(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		r := result{seed: w.seed, items: len(w.items)}
		r.goroutines, r.heap = runtime.NumGoroutine(), readHeapSize()

		watched := w.watch(ctx)
		c := newCrew(GinkgoTB(), w, path)
		DeferCleanup(c.stopAll)
		began := time.Now()
		w.runWithFaults(ctx, c, &r)
		r.trouble = time.Since(began)

		c.stopFaults()
		began = time.Now()
		w.waitUntilDesired(ctx, c)
		r.rest = time.Since(began)
		w.expectNoWrites(ctx, c)

		c.stopAll()
		Expect(c.faults).To(BeEmpty(), "seed %d", w.seed)
		watched()
		w.isClean(&r)
		w.printResult(c, &r)
	}, SpecTimeout(20*time.Minute))
})

// getSeed returns the seed that the flag sets, or Ginkgo's seed.
func getSeed() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(GinkgoRandomSeed()) //nolint:gosec // any number will do
}

// watch starts the history. The returned function stops the history, and requires that the history recorded no
// violations of the contract.
func (w *env) watch(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.history.run(ctx)
	}()
	return func() {
		GinkgoHelper()
		cancel()
		<-done
		Expect(w.history.faults).To(BeEmpty(), "seed %d", w.seed)
	}
}

// runWithFaults lets the actors work while faults are injected. When runWithFaults returns, the actors have ended, and
// no more faults are injected.
func (w *env) runWithFaults(ctx context.Context, c *replicaSet, r *result) {
	GinkgoHelper()
	trouble, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for number := range uint64(actors) {
		a := &itemUser{env: w, random: w.newRandom(1 + number)}
		for i := int(number); i < len(w.items); i += actors { //nolint:gosec // a small number
			a.items = append(a.items, w.items[i])
		}
		if len(a.items) > 0 {
			group.Go(func() error { return a.run(ctx, trouble) })
		}
	}
	all := newOutages(*duration)
	for _, o := range all {
		r.outages = append(r.outages, o.name)
	}
	group.Go(func() error { return runOutages(trouble, all, began) })
	group.Go(func() error { w.stopLeaders(trouble, c, began); return nil })
	Expect(group.Wait()).To(Succeed(), "seed %d", w.seed)
}

// waitUntilDesired waits until all items and objects have reached the desired state.
func (w *env) waitUntilDesired(ctx context.Context, c *replicaSet) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		if c.leader() == nil {
			return "no replica leads", nil
		}
		problems, err := w.listProblems(ctx)
		return strings.Join(problems, "\n"), err
	}).WithTimeout(patience).WithPolling(500*time.Millisecond).Should(BeEmpty(), "seed %d", w.seed)
}

// expectNoWrites requires that nothing is written any more, and that no replica ends.
func (w *env) expectNoWrites(ctx context.Context, c *replicaSet) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		before, err := w.takeSnapshot(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		sleepContext(ctx, quiet)
		after, err := w.takeSnapshot(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(after.getVersions()).To(Equal(before.getVersions()))
	}).WithTimeout(patience).Should(Succeed(), "seed %d: something is written at rest", w.seed)
	problems, err := w.listProblems(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(problems).To(BeEmpty(), "seed %d", w.seed)
	Expect(c.checkHealth()).To(Succeed())
}

// isClean requires that the stopped replicas have left no goroutines and no memory in this process.
func (w *env) isClean(r *result) {
	GinkgoHelper()
	Eventually(func() int { r.after = runtime.NumGoroutine(); return r.after }).WithTimeout(patience).WithPolling(time.Second).
		Should(BeNumerically("<=", r.goroutines+allowedGoroutines), dumpStacks)
	r.heapAfter = readHeapSize()
	Expect(r.heapAfter).To(BeNumerically("<=", r.heap+allowedHeap))
}

const (
	// allowedGoroutines is the maximum number of goroutines that open connections may still use.
	allowedGoroutines = 30
	// allowedHeap is the memory that the history and the caches of some libraries may use.
	allowedHeap = 64 << 20
)

// readHeapSize returns the size of the heap after a garbage collection.
func readHeapSize() int64 {
	runtime.GC()
	runtime.GC() // a second collection frees objects with finalizers
	stats := &runtime.MemStats{}
	runtime.ReadMemStats(stats)
	return int64(stats.HeapAlloc) //nolint:gosec // far from the limit
}

// dumpStacks returns the stacks of all goroutines.
func dumpStacks() string {
	buf := make([]byte, 4<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// printResult prints the result.
func (w *env) printResult(c *replicaSet, r *result) {
	r.operations, r.jobs = w.operations.Load(), w.jobs.Load()
	r.versions, r.gaps = w.history.versions, w.history.gaps
	r.kills, r.losses, r.started, r.hits = c.kills, c.losses, c.started, c.hits
	AddReportEntry("soak", r.String(), ReportEntryVisibilityAlways)
	Expect(r.operations).To(BeNumerically(">", len(w.items)), "the actors did act")
	Expect(r.kills).To(BeNumerically(">", 0), "leaders were killed")
}

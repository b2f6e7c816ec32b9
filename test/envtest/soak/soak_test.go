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

// killerDice are the dice of what kills the leader. Actors have those from 1 on.
const killerDice = 0

// suiteContext is the context of the spec, for replicas.
var suiteContext context.Context

// result is what is printed at the end.
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

// String is one line.
func (r result) String() string {
	return fmt.Sprintf("seed %d: %d items, %d operations, %d jobs, %d versions (watch begun %d times); "+
		"%d leaders killed, %d leases lost, %d replicas started; %d requests disturbed, %s; %s of trouble, at rest after %s; "+
		"goroutines %d before and %d after, heap %d KiB and %d KiB",
		r.seed, r.items, r.operations, r.jobs, r.versions, r.gaps, r.kills, r.losses, r.started, r.hits, strings.Join(r.outages, ", "),
		r.trouble.Round(time.Second), r.rest.Round(time.Second), r.goroutines, r.after, r.heap>>10, r.heapAfter>>10)
}

var _ = Describe("two replicas", func() {
	It("bring everything to rest after whatever happened [decision 28] [C14]", func(ctx SpecContext) {
		suiteContext = ctx
		w := newEnv(ctx, seedOf(), *count)
		GinkgoWriter.Println("seed", w.seed)
		w.history = newHistory(w.Client, w.Namespace)
		path, err := cp.KubeconfigFile(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		r := result{seed: w.seed, items: len(w.items)}
		r.goroutines, r.heap = runtime.NumGoroutine(), heap()

		watched := w.watch(ctx)
		c := newCrew(GinkgoTB(), w, path)
		DeferCleanup(c.end)
		began := time.Now()
		w.haveTrouble(ctx, c, &r)
		r.trouble = time.Since(began)

		c.calm()
		began = time.Now()
		w.comeToRest(ctx, c)
		r.rest = time.Since(began)
		w.stayAtRest(ctx, c)

		c.end()
		Expect(c.faults).To(BeEmpty(), "seed %d", w.seed)
		watched()
		w.isClean(&r)
		w.tell(c, &r)
	}, SpecTimeout(20*time.Minute))
})

// seedOf is what the flag says, or Ginkgo's seed.
func seedOf() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(GinkgoRandomSeed()) //nolint:gosec // any number will do
}

// watch watches until the returned function is called, which looks at what was seen.
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

// haveTrouble lets the actors play while faults occur. When it returns, everything is requested and there are no more
// faults.
func (w *env) haveTrouble(ctx context.Context, c *crew, r *result) {
	GinkgoHelper()
	trouble, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for number := range uint64(actors) {
		a := &actor{env: w, random: w.dice(1 + number)}
		for i := int(number); i < len(w.items); i += actors { //nolint:gosec // a small number
			a.items = append(a.items, w.items[i])
		}
		if len(a.items) > 0 {
			group.Go(func() error { return a.play(ctx, trouble) })
		}
	}
	all := outages(*duration)
	for _, o := range all {
		r.outages = append(r.outages, o.name)
	}
	group.Go(func() error { return suffer(trouble, all, began) })
	group.Go(func() error { w.killLeaders(trouble, c, began); return nil })
	Expect(group.Wait()).To(Succeed(), "seed %d", w.seed)
}

// comeToRest waits until everything is as requested.
func (w *env) comeToRest(ctx context.Context, c *crew) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		if c.leader() == nil {
			return "nobody leads", nil
		}
		problems, err := w.problems(ctx)
		return strings.Join(problems, "\n"), err
	}).WithTimeout(patience).WithPolling(500*time.Millisecond).Should(BeEmpty(), "seed %d", w.seed)
}

// stayAtRest checks that nothing is written any more, and that no replica ends.
func (w *env) stayAtRest(ctx context.Context, c *crew) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		before, err := w.look(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		pause(ctx, quiet)
		after, err := w.look(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(after.versions()).To(Equal(before.versions()))
	}).WithTimeout(patience).Should(Succeed(), "seed %d: something is written at rest", w.seed)
	problems, err := w.problems(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(problems).To(BeEmpty(), "seed %d", w.seed)
	Expect(c.healthy()).To(Succeed())
}

// isClean checks that the stopped replicas left nothing in this process.
func (w *env) isClean(r *result) {
	GinkgoHelper()
	Eventually(func() int { r.after = runtime.NumGoroutine(); return r.after }).WithTimeout(patience).WithPolling(time.Second).
		Should(BeNumerically("<=", r.goroutines+allowedGoroutines), stacks)
	r.heapAfter = heap()
	Expect(r.heapAfter).To(BeNumerically("<=", r.heap+allowedHeap))
}

const (
	// allowedGoroutines are those of connections that are still open.
	allowedGoroutines = 30
	// allowedHeap is what the history and some caches of the libraries may keep.
	allowedHeap = 64 << 20
)

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // finalizers
	stats := &runtime.MemStats{}
	runtime.ReadMemStats(stats)
	return int64(stats.HeapAlloc) //nolint:gosec // far from the limit
}

// stacks are those of all goroutines.
func stacks() string {
	buf := make([]byte, 4<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// tell prints what happened.
func (w *env) tell(c *crew, r *result) {
	r.operations, r.jobs = w.operations.Load(), w.jobs.Load()
	r.versions, r.gaps = w.history.versions, w.history.gaps
	r.kills, r.losses, r.started, r.hits = c.kills, c.losses, c.started, c.hits
	AddReportEntry("soak", r.String(), ReportEntryVisibilityAlways)
	Expect(r.operations).To(BeNumerically(">", len(w.items)), "the actors did act")
	Expect(r.kills).To(BeNumerically(">", 0), "leaders were killed")
}

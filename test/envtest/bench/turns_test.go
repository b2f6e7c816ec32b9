// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"net/http"
	"sync"
	"syscall"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/faultnet"
)

const (
	// turn is the time that one contender works before the next contender continues.
	turn = time.Second
	// waveTimeout is the time limit of a wave of jobs.
	waveTimeout = 20 * time.Minute
)

// startGate holds back the requests of a contender while other contenders have their turns.
type startGate struct {
	mu   sync.Mutex
	open chan struct{} // this channel is closed while requests may pass
}

func newGate() *startGate { return &startGate{open: make(chan struct{})} }

// wait delays a request until the gate opens. It is a faultnet.Injector.
func (g *startGate) wait(req *http.Request) (*http.Response, error) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func (g *startGate) openGate() { close(g.open) }

func (g *startGate) drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// jobBatch consists of one job for each item of a field, and the contender that processes these jobs.
type jobBatch struct {
	field   *itemSet
	since   string // resourceVersion of the items after the jobs were started
	counter *faultnet.Counter
	gate    *startGate
	manager ctrl.Manager

	took   time.Duration      // total time of the turns so far
	cpu    time.Duration      // processor time that this process has used during the turns so far
	stop   context.CancelFunc // nil before the first turn
	done   chan error         // channel that receives the result when all jobs have ended
	ended  sync.WaitGroup
	isDone bool
}

// runTurn lets the contender work for one turn, or until all jobs are finished.
func (w *jobBatch) runTurn(ctx context.Context) error {
	began, used := time.Now(), getCPUTime()
	timer := time.NewTimer(turn)
	defer timer.Stop()
	w.gate.openGate()
	defer w.gate.drop()
	if w.stop == nil {
		w.start(ctx)
	}
	select {
	case err := <-w.done:
		w.took, w.cpu = w.took+time.Since(began), w.cpu+getCPUTime()-used
		w.isDone = true
		w.stop()
		w.ended.Wait()
		return err
	case <-timer.C:
		w.took, w.cpu = w.took+time.Since(began), w.cpu+getCPUTime()-used
		return nil
	}
}

// start starts the contender of the wave.
func (w *jobBatch) start(ctx context.Context) {
	ctx, w.stop = context.WithTimeout(ctx, waveTimeout)
	w.done = make(chan error, 2)
	w.ended.Go(func() {
		if err := w.manager.Start(ctx); err != nil {
			w.done <- err
		}
	})
	w.ended.Go(func() { w.done <- w.field.waitUntilFinished(ctx, w.since) })
}

// result returns the result of the wave. The time in which the gate was closed does not count.
func (w *jobBatch) result() result {
	calls := w.counter.Snapshot()
	for r := range calls {
		if r.Verb == "list" || r.Resource != "deployitems" {
			delete(calls, r)
		}
	}
	return result{took: w.took, cpu: w.cpu, calls: calls.Sum(), jobs: len(w.field.items)}
}

// getCPUTime returns the processor time that this process has used. Unlike elapsed time, it hardly depends on other
// load on the machine.
func getCPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

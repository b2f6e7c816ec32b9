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
	// turn is how long one contender works before the other one continues.
	turn = time.Second
	// waveTimeout limits a wave of jobs.
	waveTimeout = 20 * time.Minute
)

// gate holds back the requests of a contender while it is the turn of another one.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while it is open
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

// wait is an Injector.
func (g *gate) wait(req *http.Request) (*http.Response, error) {
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

func (g *gate) lift() { close(g.open) }

func (g *gate) drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// wave is one job for each item of a field, and the contender that does them.
type wave struct {
	field   *field
	since   string // resourceVersion after the jobs were handed out
	counter *faultnet.Counter
	gate    *gate
	manager ctrl.Manager

	took   time.Duration      // the turns so far
	cpu    time.Duration      // that this process used in them
	stop   context.CancelFunc // nil before the first turn
	done   chan error         // gets the end of the jobs
	ended  sync.WaitGroup
	isDone bool
}

// takeTurn lets the contender work for a turn, or until all jobs are finished.
func (w *wave) takeTurn(ctx context.Context) error {
	began, used := time.Now(), cpuTime()
	timer := time.NewTimer(turn)
	defer timer.Stop()
	w.gate.lift()
	defer w.gate.drop()
	if w.stop == nil {
		w.start(ctx)
	}
	select {
	case err := <-w.done:
		w.took, w.cpu = w.took+time.Since(began), w.cpu+cpuTime()-used
		w.isDone = true
		w.stop()
		w.ended.Wait()
		return err
	case <-timer.C:
		w.took, w.cpu = w.took+time.Since(began), w.cpu+cpuTime()-used
		return nil
	}
}

// start starts the contender.
func (w *wave) start(ctx context.Context) {
	ctx, w.stop = context.WithTimeout(ctx, waveTimeout)
	w.done = make(chan error, 2)
	w.ended.Go(func() {
		if err := w.manager.Start(ctx); err != nil {
			w.done <- err
		}
	})
	w.ended.Go(func() { w.done <- w.field.awaitFinished(ctx, w.since) })
}

// whole lets the contender work until all jobs are finished.
func (w *wave) whole(ctx context.Context) (result, error) {
	for !w.isDone {
		if err := w.takeTurn(ctx); err != nil {
			return result{}, err
		}
	}
	return w.result(), nil
}

// result returns the result of the wave, without the time in which it was held back.
func (w *wave) result() result {
	calls := w.counter.Snapshot()
	for r := range calls {
		if r.Verb == "list" || r.Resource != "deployitems" {
			delete(calls, r)
		}
	}
	return result{took: w.took, cpu: w.cpu, calls: calls.Total(), jobs: len(w.field.items)}
}

// cpuTime returns the processor time that this process has used. Unlike a duration it does not depend on what else the machine does.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

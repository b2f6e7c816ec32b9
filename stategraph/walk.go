// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// State is how far a component is.
type State string

const (
	// StateReady means reconciled in this run, and ready.
	StateReady State = "Ready"
	// StateProgressing means reconciled in this run, not ready yet.
	StateProgressing State = "Progressing"
	// StateBlocked means not touched in this run, because something that it requires is not ready.
	StateBlocked State = "Blocked"
	// StateFailed means that Prepare, Reconcile or Ready returned an error.
	StateFailed State = "Failed"
)

// ComponentStatus is what a run found out about a component.
type ComponentStatus struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Reason is one line for people. It is empty if the component is ready or blocked.
	Reason string `json:"reason,omitempty"`
	// BlockedBy are the nearest components before a blocked one that are not ready and not blocked themselves.
	BlockedBy []string `json:"blockedBy,omitempty"`
}

// visitor is what a walk does with nodes. Its methods are called concurrently for several nodes.
type visitor interface {
	// visit runs one node.
	visit(ctx context.Context, place int) (Readiness, error)
	// recheck calls Ready again for a node that was visited and was not ready.
	recheck(ctx context.Context, place int) (Readiness, error)
}

// walked is the outcome of a walk.
type walked struct {
	graph *Graph
	// states are in the order in which the components were added.
	states []ComponentStatus
	errs   []error // by place
	// ended is why the walk was ended early, or nil if it was not.
	ended error
}

// walk visits all nodes, at most parallel at once. It visits each node when all that it requires are ready, regardless
// of the others. A node that is not ready, or fails, blocks those behind it and nothing else. The walk waits for
// nothing but the calls.
func (g *Graph) walk(ctx context.Context, parallel int, do visitor) *walked {
	return g.newWalk(do).run(ctx, parallel)
}

// walk is a walk in progress.
type walk struct {
	*walked

	do visitor

	mu      sync.Mutex
	changed sync.Cond // the queue, or the number of running visits
	open    []int     // by place, how many requirements are not ready yet
	queue   []int     // what may be visited now
	running int
	busy    []bool // by place, whether it is visited or in the queue
	missed  []bool // by place, whether its object changed meanwhile
	again   []int  // by place, how often it was rechecked
	over    bool
}

// maxAgain is how often one walk rechecks a node. An object that changes all the time is left to the next walk.
const maxAgain = 20

func (g *Graph) newWalk(do visitor) *walk {
	w := &walk{
		walked: &walked{graph: g, states: make([]ComponentStatus, len(g.nodes)), errs: make([]error, len(g.nodes))},
		do:     do, open: make([]int, len(g.nodes)), queue: make([]int, 0, len(g.nodes)), busy: make([]bool, len(g.nodes)),
		missed: make([]bool, len(g.nodes)), again: make([]int, len(g.nodes)),
	}
	w.changed.L = &w.mu
	for place := range g.nodes {
		w.states[place].Name = g.nodes[place].component
		if w.open[place] = len(g.nodes[place].requires); w.open[place] == 0 {
			w.queue, w.busy[place] = append(w.queue, place), true
		}
	}
	return w
}

// run visits what can be visited, and returns when nothing more can be.
func (w *walk) run(ctx context.Context, parallel int) *walked {
	var group sync.WaitGroup
	for range min(parallel, len(w.states)) - 1 {
		group.Go(func() { w.work(ctx) })
	}
	w.work(ctx)
	group.Wait()
	w.block()
	return w.walked
}

// work visits one node after the other until none is left and none runs, because a running visit could make others
// ready.
func (w *walk) work(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.queue) == 0 && w.running > 0 {
			w.changed.Wait()
		}
		if len(w.queue) > 0 && ctx.Err() != nil {
			w.ended, w.queue = context.Cause(ctx), nil
		}
		if len(w.queue) == 0 {
			w.over = true
			w.changed.Broadcast()
			return
		}
		place := w.queue[0]
		w.queue = w.queue[1:]
		w.running++
		again := w.states[place].State != ""
		w.mu.Unlock()
		readiness, err := visitSafely(ctx, w.do, place, again)
		w.mu.Lock()
		w.running--
		w.done(place, readiness, err)
	}
}

// done records the outcome of a visit, and which nodes may be visited now. The caller holds the lock.
func (w *walk) done(place int, readiness Readiness, err error) {
	w.busy[place] = false
	w.note(place, readiness, err)
	if w.states[place].State == StateReady {
		for _, dependent := range w.graph.nodes[place].dependents {
			if w.open[dependent]--; w.open[dependent] == 0 {
				w.queue, w.busy[dependent] = append(w.queue, dependent), true
			}
		}
	}
	if missed := w.missed[place]; missed && w.running > 0 {
		w.lookAgain(place)
	}
	if len(w.queue) > 1 || w.running == 0 {
		w.changed.Broadcast()
	} else if len(w.queue) == 1 {
		w.changed.Signal()
	}
}

// isOpen reports whether all that a node requires is ready.
func (w *walk) isOpen(place int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[place] == 0
}

// news requests a recheck of a node that was not ready, if others still run. It reports whether the recheck happens.
// Otherwise it is left to the next walk.
func (w *walk) news(place int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[place] {
		w.missed[place] = true
		return false
	}
	if w.over || !w.lookAgain(place) {
		return false
	}
	w.changed.Signal()
	return true
}

// lookAgain adds a node that is not ready yet to the queue. The caller holds the lock.
func (w *walk) lookAgain(place int) bool {
	w.missed[place] = false
	if w.states[place].State != StateProgressing || w.again[place] == maxAgain {
		return false
	}
	w.again[place]++
	w.queue, w.busy[place] = append(w.queue, place), true
	return true
}

// inParallel calls f for 0 to n-1, at most parallel at once, and returns when all calls have.
func inParallel(n, parallel int, f func(i int)) {
	if parallel = min(parallel, n); parallel <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < n; i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	group.Wait()
}

// visitSafely converts a panic to an error.
func visitSafely(ctx context.Context, do visitor, place int, again bool) (readiness Readiness, err error) {
	defer recovered(&err)
	if again {
		return do.recheck(ctx, place)
	}
	return do.visit(ctx, place)
}

// note records the outcome of one node.
func (w *walked) note(place int, readiness Readiness, err error) {
	state := &w.states[place]
	switch {
	case err != nil:
		state.State, state.Reason, w.errs[place] = StateFailed, line(err.Error()), err
	case readiness.Ready:
		state.State, state.Reason = StateReady, ""
	default:
		state.State, state.Reason = StateProgressing, line(readiness.Reason)
		if state.Reason == "" {
			state.Reason = "not ready yet"
		}
	}
}

// block records for the nodes that were not visited which ones block them. If the walk was ended early, some are not
// blocked. They would have been next.
func (w *walked) block() {
	for _, place := range w.graph.order {
		state := &w.states[place]
		if state.State != "" {
			continue
		}
		blockers := w.blockers(place)
		if len(blockers) == 0 {
			state.State, state.Reason = StateProgressing, line(fmt.Sprintf("the run was ended before: %v", w.ended))
			continue
		}
		state.State, state.BlockedBy = StateBlocked, w.graph.names(blockers)
	}
}

// blockers returns the nodes before this one that are not ready, and not blocked themselves.
func (w *walked) blockers(place int) []int {
	var out []int
	for _, required := range w.graph.nodes[place].requires {
		switch w.states[required].State {
		case StateReady:
		case StateBlocked:
			for _, name := range w.states[required].BlockedBy {
				out = append(out, w.graph.index[name])
			}
		default:
			out = append(out, required)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// err joins the errors of all nodes, in the order in which they were added. It returns nil if none failed.
func (w *walked) err() error {
	var errs []error
	for place, err := range w.errs {
		if err != nil {
			errs = append(errs, fmt.Errorf("component %s: %w", w.graph.nodes[place].component, err))
		}
	}
	if w.ended != nil {
		errs = append(errs, w.ended)
	}
	return errors.Join(errs...)
}

// moving reports whether a component makes progress.
func (w *walked) moving() bool {
	return slices.ContainsFunc(w.states, func(s ComponentStatus) bool { return s.State == StateProgressing })
}

// ready reports whether all nodes are ready.
func (w *walked) ready() bool {
	return !slices.ContainsFunc(w.states, func(s ComponentStatus) bool { return s.State != StateReady })
}

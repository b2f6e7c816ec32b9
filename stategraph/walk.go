// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// State is the state of a component.
type State string

const (
	// StateReady means that the component was reconciled in this run and is ready.
	StateReady State = "Ready"
	// StateProgressing means that the component was reconciled in this run and is not ready yet.
	StateProgressing State = "Progressing"
	// StateBlocked means that the component was not visited in this run, because a required component is not ready.
	StateBlocked State = "Blocked"
	// StateFailed means that Prepare, Reconcile or Ready returned an error.
	StateFailed State = "Failed"
)

// ComponentStatus is the state of a component at the end of a run.
type ComponentStatus struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Reason is one line of text. It is empty if the component is ready or blocked.
	Reason string `json:"reason,omitempty"`
	// BlockedBy lists the components that this component waits for. If a required component is itself blocked, the list
	// contains the blockers of that component instead.
	BlockedBy []string `json:"blockedBy,omitempty"`
}

// visitor contains the methods that a walk calls for its nodes. The walk calls them concurrently for different nodes.
type visitor interface {
	// visit visits one node.
	visit(ctx context.Context, place int) (Readiness, error)
	// recheck checks again whether a node is ready. It is called only for nodes that were not ready after their visit.
	recheck(ctx context.Context, place int) (Readiness, error)
}

// walkResult is the result of a walk.
type walkResult struct {
	graph *Graph
	// states are in the order in which the components were added.
	states []ComponentStatus
	errs   map[int]error // the errors of failed nodes, by index of the node
	// ended is the reason why the walk ended early, or nil.
	ended error
}

// walk is a walk in progress. It visits each node as soon as all nodes that the node requires are ready. A node that is
// not ready or has failed blocks only the nodes that require it. The walk ends when no visit is running and no other
// node may be visited.
type walk struct {
	*walkResult

	visitor visitor

	mu       sync.Mutex
	changed  sync.Cond      // signals changes of the fields `queue`, `running` and `finished`
	nodes    []nodeProgress // by index of the node
	queue    []int          // the nodes that may be visited now
	running  int            // number of running visits
	visited  int            // number of completed visits
	finished bool
}

// nodeProgress is the progress of a node in a walk.
type nodeProgress struct {
	unreadyCount     int16 // number of required nodes that are not ready yet
	rechecks         uint8 // number of rechecks
	busy             bool  // the node is in the queue, or a visit of the node is running
	changedWhileBusy bool  // an object of the node changed while `busy` was true
}

// maxRechecks is the maximum number of times that one walk rechecks a node. Without a limit, the walk might never end
// if an object of the node changes all the time.
const maxRechecks = 20

func (g *Graph) newWalk(do visitor) *walk {
	w := &walk{
		walkResult: &walkResult{graph: g, states: make([]ComponentStatus, len(g.nodes)), errs: map[int]error{}},
		visitor:    do, nodes: make([]nodeProgress, len(g.nodes)), queue: make([]int, 0, len(g.nodes)),
	}
	w.changed.L = &w.mu
	for place := range g.nodes {
		w.states[place].Name = g.nodes[place].component
		if w.nodes[place].unreadyCount = int16(len(g.nodes[place].requires)); w.nodes[place].unreadyCount == 0 { //nolint:gosec // at most MaxComponents
			w.enqueue(place)
		}
	}
	return w
}

const (
	// singleWorkerInterval is the interval at which a walk with one worker decides whether to start more workers.
	singleWorkerInterval = 50 * time.Microsecond
	// singleWorkerVisits is the number of visits that one worker must complete within singleWorkerInterval to remain the
	// only worker. If the visits are that fast, more workers would cost more time than they save.
	singleWorkerVisits = 50
)

// run visits nodes, and returns when no further node can be visited. At most `parallel` nodes are visited at the same
// time.
func (w *walk) run(ctx context.Context, parallel int) *walkResult {
	var group sync.WaitGroup
	if others := min(parallel, len(w.states)) - 1; others > 0 {
		before := 0
		var timer *time.Timer
		w.mu.Lock()
		timer = time.AfterFunc(singleWorkerInterval, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			switch {
			case w.finished:
			case w.visited-before >= singleWorkerVisits:
				before = w.visited
				timer.Reset(singleWorkerInterval)
			default:
				for range others {
					group.Go(func() { w.runWorker(ctx) })
				}
			}
		})
		w.mu.Unlock()
		defer timer.Stop()
	}
	w.runWorker(ctx)
	group.Wait()
	w.setUnvisitedStates()
	return w.walkResult
}

// enqueue adds a node to the queue. The caller holds the lock.
func (w *walk) enqueue(place int) {
	w.queue, w.nodes[place].busy = append(w.queue, place), true
}

// runWorker visits nodes until the queue is empty and no visit is running. A running visit may still add nodes to the
// queue.
func (w *walk) runWorker(ctx context.Context) {
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
			w.finished = true
			w.changed.Broadcast()
			return
		}
		place := w.queue[0]
		w.queue = w.queue[1:]
		w.running++
		again := w.states[place].State != ""
		w.mu.Unlock()
		readiness, err := visitRecoveringPanic(ctx, w.visitor, place, again)
		w.mu.Lock()
		w.running--
		w.visited++
		w.completeVisit(place, readiness, err)
	}
}

// completeVisit records the result of a visit. If other nodes may be visited because of this result, completeVisit adds
// them to the queue. The caller holds the lock.
func (w *walk) completeVisit(place int, readiness Readiness, err error) {
	w.nodes[place].busy = false
	w.setState(place, readiness, err)
	if w.states[place].State == StateReady {
		for _, dependent := range w.graph.nodes[place].dependents {
			if w.nodes[dependent].unreadyCount--; w.nodes[dependent].unreadyCount == 0 {
				w.enqueue(dependent)
			}
		}
	}
	if w.nodes[place].changedWhileBusy && w.running > 0 {
		w.enqueueRecheck(place)
	}
	if len(w.queue) > 1 || w.running == 0 {
		w.changed.Broadcast()
	} else if len(w.queue) == 1 {
		w.changed.Signal()
	}
}

// isOpen reports whether all nodes that the node requires are ready.
func (w *walk) isOpen(place int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[place].unreadyCount == 0
}

// requestRecheck requests a recheck of a node because one of its objects has changed. It reports whether this walk will
// recheck the node. If not, the next walk must check the node.
func (w *walk) requestRecheck(place int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes[place].busy {
		w.nodes[place].changedWhileBusy = true
		return false
	}
	if w.finished || !w.enqueueRecheck(place) {
		return false
	}
	w.changed.Signal()
	return true
}

// enqueueRecheck adds a node to the queue for a recheck, if the node is not ready. It reports whether it added the
// node. The caller holds the lock.
func (w *walk) enqueueRecheck(place int) bool {
	node := &w.nodes[place]
	node.changedWhileBusy = false
	if w.states[place].State != StateProgressing || node.rechecks == maxRechecks {
		return false
	}
	node.rechecks++
	w.enqueue(place)
	return true
}

// visitRecoveringPanic visits or rechecks a node, and converts a panic to an error.
func visitRecoveringPanic(ctx context.Context, do visitor, place int, again bool) (readiness Readiness, err error) {
	defer recoverPanic(&err)
	if again {
		return do.recheck(ctx, place)
	}
	return do.visit(ctx, place)
}

// setState records the result of a visit.
func (w *walkResult) setState(place int, readiness Readiness, err error) {
	state := &w.states[place]
	switch {
	case err != nil:
		state.State, state.Reason, w.errs[place] = StateFailed, toLine(formatError(err)), err
	case readiness.Ready:
		state.State, state.Reason = StateReady, ""
	default:
		state.State, state.Reason = StateProgressing, toLine(readiness.Reason)
		if state.Reason == "" {
			state.Reason = "not ready yet"
		}
	}
}

// setUnvisitedStates sets the states of the nodes that were not visited. The state is Blocked if a required node is not
// ready. Otherwise the walk ended before it reached the node, and the state is Progressing.
func (w *walkResult) setUnvisitedStates() {
	for _, place := range w.graph.order {
		state := &w.states[place]
		if state.State != "" {
			continue
		}
		blockers := w.findBlockers(place)
		if len(blockers) == 0 {
			state.State, state.Reason = StateProgressing, toLine(fmt.Sprintf("the run ended before the component was visited: %v", w.ended))
			continue
		}
		state.State, state.BlockedBy = StateBlocked, w.graph.toNames(blockers)
	}
}

// findBlockers returns the nodes that a node waits for. If a required node is itself blocked, the result contains the
// blockers of that node instead.
func (w *walkResult) findBlockers(place int) []int {
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

// listErrors returns the errors of all failed nodes, in the order in which the nodes were added.
func (w *walkResult) listErrors() (errs []error) {
	for place := range w.states {
		if err := w.errs[place]; err != nil {
			errs = append(errs, fmt.Errorf("component %s: %w", w.states[place].Name, err))
		}
	}
	return errs
}

// err joins the errors of all failed nodes, and the reason why the walk ended early. It returns nil if there are none.
func (w *walkResult) err() error { return errors.Join(append(w.listErrors(), w.ended)...) }

// isProgressing reports whether the state of at least one component is Progressing.
func (w *walkResult) isProgressing() bool {
	return slices.ContainsFunc(w.states, func(s ComponentStatus) bool { return s.State == StateProgressing })
}

// isReady reports whether all nodes are ready.
func (w *walkResult) isReady() bool {
	return !slices.ContainsFunc(w.states, func(s ComponentStatus) bool { return s.State != StateReady })
}

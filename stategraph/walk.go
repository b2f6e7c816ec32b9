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

// walked is the result of a walk.
type walked struct {
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
	*walked

	do visitor

	mu      sync.Mutex
	changed sync.Cond  // signals changes of the fields `queue`, `running` and `over`
	nodes   []progress // by index of the node
	queue   []int      // the nodes that may be visited now
	running int        // number of running visits
	visited int        // number of completed visits
	over    bool
}

// progress is the progress of a node in a walk.
type progress struct {
	open   int16 // number of required nodes that are not ready yet
	again  uint8 // number of rechecks
	busy   bool  // the node is in the queue, or a visit of the node is running
	missed bool  // an object of the node changed while `busy` was true
}

// maxAgain is the maximum number of times that one walk rechecks a node. Without a limit, the walk might never end if
// an object of the node changes all the time.
const maxAgain = 20

func (g *Graph) newWalk(do visitor) *walk {
	w := &walk{
		walked: &walked{graph: g, states: make([]ComponentStatus, len(g.nodes)), errs: map[int]error{}},
		do:     do, nodes: make([]progress, len(g.nodes)), queue: make([]int, 0, len(g.nodes)),
	}
	w.changed.L = &w.mu
	for place := range g.nodes {
		w.states[place].Name = g.nodes[place].component
		if w.nodes[place].open = int16(len(g.nodes[place].requires)); w.nodes[place].open == 0 { //nolint:gosec // at most MaxComponents
			w.enqueue(place)
		}
	}
	return w
}

const (
	// aloneTime is the interval at which a walk with one worker decides whether to start more workers.
	aloneTime = 50 * time.Microsecond
	// quickVisits is the number of visits that one worker must complete within aloneTime to remain the only worker. If
	// the visits are that fast, more workers would cost more time than they save.
	quickVisits = 50
)

// run visits nodes, and returns when no further node can be visited. At most `parallel` nodes are visited at the same
// time.
func (w *walk) run(ctx context.Context, parallel int) *walked {
	var group sync.WaitGroup
	if others := min(parallel, len(w.states)) - 1; others > 0 {
		before := 0
		var timer *time.Timer
		w.mu.Lock()
		timer = time.AfterFunc(aloneTime, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			switch {
			case w.over:
			case w.visited-before >= quickVisits:
				before = w.visited
				timer.Reset(aloneTime)
			default:
				for range others {
					group.Go(func() { w.work(ctx) })
				}
			}
		})
		w.mu.Unlock()
		defer timer.Stop()
	}
	w.work(ctx)
	group.Wait()
	w.block()
	return w.walked
}

// enqueue adds a node to the queue. The caller holds the lock.
func (w *walk) enqueue(place int) {
	w.queue, w.nodes[place].busy = append(w.queue, place), true
}

// work visits nodes until the queue is empty and no visit is running. A running visit may still add nodes to the queue.
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
		w.visited++
		w.done(place, readiness, err)
	}
}

// done records the result of a visit. If other nodes may be visited because of this result, done adds them to the
// queue. The caller holds the lock.
func (w *walk) done(place int, readiness Readiness, err error) {
	w.nodes[place].busy = false
	w.note(place, readiness, err)
	if w.states[place].State == StateReady {
		for _, dependent := range w.graph.nodes[place].dependents {
			if w.nodes[dependent].open--; w.nodes[dependent].open == 0 {
				w.enqueue(dependent)
			}
		}
	}
	if w.nodes[place].missed && w.running > 0 {
		w.lookAgain(place)
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
	return w.nodes[place].open == 0
}

// news requests a recheck of a node because one of its objects has changed. It reports whether this walk will recheck
// the node. If not, the next walk must check the node.
func (w *walk) news(place int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes[place].busy {
		w.nodes[place].missed = true
		return false
	}
	if w.over || !w.lookAgain(place) {
		return false
	}
	w.changed.Signal()
	return true
}

// lookAgain adds a node to the queue for a recheck, if the node is not ready. It reports whether it added the node. The
// caller holds the lock.
func (w *walk) lookAgain(place int) bool {
	node := &w.nodes[place]
	node.missed = false
	if w.states[place].State != StateProgressing || node.again == maxAgain {
		return false
	}
	node.again++
	w.enqueue(place)
	return true
}

// visitSafely visits or rechecks a node, and converts a panic to an error.
func visitSafely(ctx context.Context, do visitor, place int, again bool) (readiness Readiness, err error) {
	defer recovered(&err)
	if again {
		return do.recheck(ctx, place)
	}
	return do.visit(ctx, place)
}

// note records the result of a visit.
func (w *walked) note(place int, readiness Readiness, err error) {
	state := &w.states[place]
	switch {
	case err != nil:
		state.State, state.Reason, w.errs[place] = StateFailed, line(message(err)), err
	case readiness.Ready:
		state.State, state.Reason = StateReady, ""
	default:
		state.State, state.Reason = StateProgressing, line(readiness.Reason)
		if state.Reason == "" {
			state.Reason = "not ready yet"
		}
	}
}

// block sets the states of the nodes that were not visited. The state is Blocked if a required node is not ready.
// Otherwise the walk ended before it reached the node, and the state is Progressing.
func (w *walked) block() {
	for _, place := range w.graph.order {
		state := &w.states[place]
		if state.State != "" {
			continue
		}
		blockers := w.blockers(place)
		if len(blockers) == 0 {
			state.State, state.Reason = StateProgressing, line(fmt.Sprintf("the run ended before the component was visited: %v", w.ended))
			continue
		}
		state.State, state.BlockedBy = StateBlocked, w.graph.names(blockers)
	}
}

// blockers returns the nodes that a node waits for. If a required node is itself blocked, the result contains the
// blockers of that node instead.
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

// failures returns the errors of all failed nodes, in the order in which the nodes were added.
func (w *walked) failures() (errs []error) {
	for place := range w.states {
		if err := w.errs[place]; err != nil {
			errs = append(errs, fmt.Errorf("component %s: %w", w.states[place].Name, err))
		}
	}
	return errs
}

// err joins the errors of all failed nodes, and the reason why the walk ended early. It returns nil if there are none.
func (w *walked) err() error { return errors.Join(append(w.failures(), w.ended)...) }

// moving reports whether the state of at least one component is Progressing.
func (w *walked) moving() bool {
	return slices.ContainsFunc(w.states, func(s ComponentStatus) bool { return s.State == StateProgressing })
}

// ready reports whether all nodes are ready.
func (w *walked) ready() bool {
	return !slices.ContainsFunc(w.states, func(s ComponentStatus) bool { return s.State != StateReady })
}

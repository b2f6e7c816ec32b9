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
	// StateFailed means that preparing, reconciling, or asking whether it is ready was an error.
	StateFailed State = "Failed"
)

// ComponentStatus is what a run found out about a component.
type ComponentStatus struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Reason is one line for people; empty when ready or blocked.
	Reason string `json:"reason,omitempty"`
	// BlockedBy are the nearest components that are not ready themselves and stand before a blocked one.
	BlockedBy []string `json:"blockedBy,omitempty"`
}

// steps is what a walk does with nodes.
type steps interface {
	// prepare is called once per wave, before its nodes run. An error of a node counts as its failure: it does not run.
	prepare(ctx context.Context, wave []int) map[int]error
	// visit runs one node. Nodes of a wave are visited concurrently.
	visit(ctx context.Context, place int) (Readiness, error)
}

// walked is the outcome of a walk.
type walked struct {
	graph *Graph
	// states are in the order in which the components were added.
	states []ComponentStatus
	errs   []error // by place
	// ended is why the walk was ended early; nil: it was not.
	ended error
}

// walk visits all nodes: each runs when all that it requires are ready, in waves, within a wave at most parallel at once.
// What is not ready, or fails, blocks those behind it and nobody else. Nothing waits for anything but the calls.
func (g *Graph) walk(ctx context.Context, parallel int, do steps) *walked {
	w := &walked{graph: g, states: make([]ComponentStatus, len(g.nodes)), errs: make([]error, len(g.nodes))}
	open := make([]int, len(g.nodes))
	wave := make([]int, 0, len(g.nodes))
	for place := range g.nodes {
		w.states[place].Name = g.nodes[place].component
		if open[place] = len(g.nodes[place].requires); open[place] == 0 {
			wave = append(wave, place)
		}
	}
	for len(wave) > 0 {
		if ctx.Err() != nil {
			w.ended = context.Cause(ctx)
			break
		}
		w.visit(ctx, wave, parallel, do)
		wave = w.after(wave, open)
	}
	w.block()
	return w
}

// after is the wave that may run when this one did. open is how many requirements of each node are not ready yet.
func (w *walked) after(wave, open []int) []int {
	var next []int
	for _, place := range wave {
		if w.states[place].State != StateReady {
			continue
		}
		for _, dependent := range w.graph.nodes[place].dependents {
			if open[dependent]--; open[dependent] == 0 {
				next = append(next, dependent)
			}
		}
	}
	slices.Sort(next)
	return next
}

// visit runs one wave.
func (w *walked) visit(ctx context.Context, wave []int, parallel int, do steps) {
	faults := do.prepare(ctx, wave)
	one := func(place int) {
		readiness, err := Readiness{}, faults[place]
		if err == nil {
			readiness, err = visitSafely(ctx, do, place)
		}
		w.note(place, readiness, err)
	}
	inParallel(len(wave), parallel, func(i int) { one(wave[i]) })
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

// visitSafely makes a panic an error.
func visitSafely(ctx context.Context, do steps, place int) (readiness Readiness, err error) {
	defer recovered(&err)
	return do.visit(ctx, place)
}

// note keeps the outcome of one node.
func (w *walked) note(place int, readiness Readiness, err error) {
	state := &w.states[place]
	switch {
	case err != nil:
		state.State, state.Reason, w.errs[place] = StateFailed, line(err.Error()), err
	case readiness.Ready:
		state.State = StateReady
	default:
		state.State, state.Reason = StateProgressing, line(readiness.Reason)
		if state.Reason == "" {
			state.Reason = "not ready yet"
		}
	}
}

// block tells the nodes that were not visited who blocks them. When the walk was ended early, some are blocked by nobody:
// they would have been next.
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

// blockers are the nodes before this one that are not ready, and not blocked themselves.
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

// err joins the errors of all nodes, in the order in which they were added. nil: none failed.
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

// moving reports whether a component is on its way.
func (w *walked) moving() bool {
	return slices.ContainsFunc(w.states, func(s ComponentStatus) bool { return s.State == StateProgressing })
}

// ready tells that all nodes are.
func (w *walked) ready() bool {
	return !slices.ContainsFunc(w.states, func(s ComponentStatus) bool { return s.State != StateReady })
}

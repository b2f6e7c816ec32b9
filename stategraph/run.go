// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
)

// run is one walk through the graph for one deploy item.
type run struct {
	graph    *Graph
	item     *lsv1alpha1.DeployItem // never changed
	session  session
	target   client.Client // nil if there is none
	log      logr.Logger
	parallel int

	nodes  []Node
	visits []nodeContext // by place

	mu      sync.Mutex
	owners  map[apply.Ref]string // which component keeps an object
	outputs [][]*output          // by place
	after   time.Duration        // when to check again; 0 if that was not requested
	config  any                  // of the item, for graphs that know its type
	under   *walk                // nil before it has begun
	// The following are by place. They hold which bodies were called, and the results of those whose turn has not come.
	asked    []bool
	foreseen [][]*output
}

// newRun begins a run. item is not copied and must not change while the run lasts. reached is the client of the target
// and may be nil. parallel is how many components run at once.
func newRun(g *Graph, item *lsv1alpha1.DeployItem, s session, reached client.Client, log logr.Logger, parallel int) *run {
	r := &run{
		graph: g, item: item, session: s, target: reached, log: log, parallel: parallel,
		nodes: make([]Node, len(g.nodes)), visits: make([]nodeContext, len(g.nodes)), outputs: make([][]*output, len(g.nodes)), asked: make([]bool, len(g.nodes)), foreseen: make([][]*output, len(g.nodes)), owners: map[apply.Ref]string{},
	}
	for place := range g.nodes {
		r.nodes[place] = Node{run: r, place: place, component: g.nodes[place].component}
	}
	return r
}

// walk visits all components once. next is when to check again although nothing happened. Zero means when a listener
// asks.
func (r *run) walk(ctx context.Context) (w *walked, next time.Duration) {
	under := r.graph.newWalk(r)
	r.mu.Lock()
	r.under = under
	r.mu.Unlock()
	w = under.run(ctx, r.parallel)
	next = shorter(r.graph.timer, r.after)
	for place := range w.states {
		if state := w.states[place].State; state == StateProgressing || state == StateFailed {
			next = shorter(next, r.graph.nodes[place].poll)
		}
	}
	return w, next
}

// news requests another visit of a component whose object changed. It reports whether the walk still goes on and makes
// the visit.
func (r *run) news(component string) bool {
	r.mu.Lock()
	under := r.under
	r.mu.Unlock()
	place, found := r.graph.index[component]
	return found && under != nil && under.news(place)
}

// prepare gets the objects of a node, and adds them to the inventory.
func (r *run) prepare(ctx context.Context, place int) error {
	if node := &r.graph.nodes[place]; node.preparer == nil && node.deleter == nil {
		return nil
	}
	if err := r.prepareNode(ctx, place); err != nil {
		return err
	}
	if err := r.own(place); err != nil {
		return err
	}
	c := r.claimOf(place)
	if len(c.Desired) == 0 && !c.Undo {
		return nil
	}
	return r.session.Claim(ctx, c, func() []claim {
		r.ask(place)
		return r.foresee(ctx)
	})
}

// foreseeTime bounds how long bodies may take to return what they will keep.
const foreseeTime = 50 * time.Millisecond

// foresee returns the names of the objects of nodes that have claimed nothing yet, as far as they can be known before
// what the nodes require is ready. With them, the inventory is stored once for all nodes instead of once for each.
// Nothing else is made of the result, and each body is called again when its turn comes. Nodes that have something to
// undo are included if they may run now.
func (r *run) foresee(ctx context.Context) (claims []claim) {
	ctx, cancel := context.WithTimeout(ctx, foreseeTime)
	defer cancel()
	for _, place := range r.graph.order {
		if ctx.Err() != nil || !r.ask(place) {
			continue
		}
		c := claim{Unit: r.graph.nodes[place].unit, Undo: r.graph.nodes[place].deleter != nil && r.under.isOpen(place)}
		if r.graph.nodes[place].preparer != nil {
			node := &Node{run: r, place: place, component: c.Component, ahead: true}
			if desired, err := node.foreseen(ctx); err == nil {
				c.Desired = desired
			}
		}
		if c.Undo || len(c.Desired) > 0 {
			claims = append(claims, c)
		}
	}
	return claims
}

// ask records that a node was asked for its objects. It reports whether this is the first time.
func (r *run) ask(place int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.asked[place]
	r.asked[place] = true
	return !before
}

// foreseen returns the objects of a node whose turn has not come.
func (n *Node) foreseen(ctx context.Context) (desired []apply.Desired, err error) {
	defer recovered(&err)
	if desired, err = n.run.graph.nodes[n.place].preparer.Prepare(n.with(ctx)); err != nil {
		return nil, err
	}
	if desired, err = n.identify(desired); err != nil {
		return nil, err
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	outs := outputsAhead(desired)
	for _, out := range outs {
		if owner, found := n.run.owners[target.WithoutVersion(out.ref)]; found && owner != n.component {
			return nil, fmt.Errorf("%s is kept by the component %s", out.ref, owner)
		}
	}
	for _, out := range outs {
		n.run.owners[target.WithoutVersion(out.ref)] = n.component
	}
	n.run.foreseen[n.place] = outs
	return desired, nil
}

// outputsAhead returns what objects will leave, as far as it is known before they are applied.
func outputsAhead(desired []apply.Desired) []*output {
	outs := make([]*output, len(desired))
	for i, d := range desired {
		outs[i] = &output{instance: instanceOf(d.Object), ref: apply.RefOf(d.Object)}
	}
	return outs
}

// prepareNode gets the objects of one node.
func (r *run) prepareNode(ctx context.Context, place int) error {
	preparer, node := r.graph.nodes[place].preparer, &r.nodes[place]
	if preparer == nil {
		return nil
	}
	desired, err := preparer.Prepare(node.with(ctx))
	if err != nil {
		return err
	}
	if desired, err = node.identify(desired); err != nil {
		return err
	}
	node.kept = &kept{desired: desired}
	return nil
}

// own records which objects a component keeps. No two components may keep the same object.
func (r *run) own(place int) error {
	node := &r.nodes[place]
	if node.kept == nil {
		return nil
	}
	mine := map[apply.Ref]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range node.kept.desired {
		ref := apply.RefOf(d.Object)
		id := target.WithoutVersion(ref)
		if mine[id] {
			return fmt.Errorf("%s is there twice; give the objects names", ref)
		}
		if owner, found := r.owners[id]; found && owner != node.component {
			return fmt.Errorf("%s is kept by the component %s already", ref, owner)
		}
		mine[id] = true
	}
	for id := range mine {
		r.owners[id] = node.component
	}
	r.foreseen[place] = outputsAhead(node.kept.desired)
	return nil
}

// claimOf returns what the inventory must know before the node runs.
func (r *run) claimOf(place int) claim {
	node := &r.graph.nodes[place]
	c := claim{Unit: node.unit, Undo: node.deleter != nil}
	if k := r.nodes[place].kept; k != nil {
		c.Desired = k.desired
	}
	return c
}

// visit runs one node.
func (r *run) visit(ctx context.Context, place int) (Readiness, error) {
	if err := r.prepare(ctx, place); err != nil {
		return Readiness{}, err
	}
	node := &r.graph.nodes[place]
	visit := &r.visits[place]
	visit.Context, visit.node = ctx, &r.nodes[place]
	ctx = visit
	if err := node.resource.Reconcile(ctx); err != nil {
		return r.waited(err)
	}
	if node.always {
		return Ready(), nil
	}
	return r.ready(ctx, node)
}

// recheck calls the Ready of a node again.
func (r *run) recheck(ctx context.Context, place int) (Readiness, error) {
	node := &r.nodes[place]
	if node.kept != nil {
		for _, o := range node.kept.outcomes {
			r.session.Changed(o.Ref)
		}
	}
	return r.ready(node.with(ctx), &r.graph.nodes[place])
}

func (r *run) ready(ctx context.Context, node *node) (Readiness, error) {
	readiness, err := node.resource.Ready(ctx)
	if err != nil {
		return r.waited(err)
	}
	return readiness, nil
}

// waited converts a deployerlib.WaitFor to a Readiness that is not ready yet.
func (r *run) waited(err error) (Readiness, error) {
	reason, after, waits := deployerlib.AsWait(err)
	if !waits {
		return Readiness{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = shorter(r.after, after)
	return NotReady("%s", reason), nil
}

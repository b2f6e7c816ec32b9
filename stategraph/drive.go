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
)

// run is one walk through the graph for one deploy item.
type run struct {
	graph    *Graph
	item     *lsv1alpha1.DeployItem // never changed
	session  session
	target   client.Client // nil: there is none
	log      logr.Logger
	parallel int

	nodes []Node

	mu      sync.Mutex
	owners  map[apply.Ref]string // which component keeps an object
	outputs [][]*output          // by place
	after   time.Duration        // when somebody asked to look again; 0: nobody did
}

// newRun begins a run. item is not copied and must not change while the run lasts. target may be nil. parallel is how many
// components run at once.
func newRun(g *Graph, item *lsv1alpha1.DeployItem, s session, target client.Client, log logr.Logger, parallel int) *run {
	r := &run{
		graph: g, item: item, session: s, target: target, log: log, parallel: parallel,
		nodes: make([]Node, len(g.nodes)), outputs: make([][]*output, len(g.nodes)), owners: map[apply.Ref]string{},
	}
	for place := range g.nodes {
		r.nodes[place] = Node{run: r, place: place, component: g.nodes[place].component}
	}
	return r
}

// walk visits all components once. next is when to look again although nothing happened; 0: when a listener asks.
func (r *run) walk(ctx context.Context) (w *walked, next time.Duration) {
	w = r.graph.walk(ctx, r.parallel, r)
	next = shorter(r.graph.timer, r.after)
	for place := range w.states {
		if state := w.states[place].State; state == StateProgressing || state == StateFailed {
			next = shorter(next, r.graph.nodes[place].poll)
		}
	}
	return w, next
}

// prepare asks the nodes of a wave for their objects, and puts those into the inventory.
func (r *run) prepare(ctx context.Context, wave []int) map[int]error {
	var asked []int
	for _, place := range wave {
		if node := &r.graph.nodes[place]; node.preparer != nil || node.deleter != nil {
			asked = append(asked, place)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	errs := make([]error, len(asked))
	inParallel(len(asked), r.parallel, func(i int) { errs[i] = r.prepareNode(ctx, asked[i]) })
	faults := map[int]error{}
	var claims []claim
	for i, place := range asked {
		err := errs[i]
		if err == nil {
			err = r.own(place) // here, so that of two that keep the same object it is always the later one that fails
		}
		if err != nil {
			faults[place] = err
			continue
		}
		claims = append(claims, r.claimOf(place))
	}
	r.claim(ctx, claims, faults)
	return faults
}

// claim hands the claims of a wave to the session. Without the inventory nothing may be written.
func (r *run) claim(ctx context.Context, claims []claim, faults map[int]error) {
	if len(claims) == 0 {
		return
	}
	if err := r.session.Claim(ctx, claims); err != nil {
		for _, c := range claims {
			faults[r.graph.index[c.Component]] = fmt.Errorf("store the inventory: %w", err)
		}
	}
}

// prepareNode asks one node for its objects.
func (r *run) prepareNode(ctx context.Context, place int) (err error) {
	defer recovered(&err)
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

// own notes which objects a component keeps. No two components may keep the same.
func (r *run) own(place int) error {
	node := &r.nodes[place]
	if node.kept == nil {
		return nil
	}
	mine := map[apply.Ref]bool{}
	for _, d := range node.kept.desired {
		ref := apply.RefOf(d.Object)
		id := ref
		id.APIVersion = ref.GVK().Group // versions do not make different objects
		if mine[id] {
			return fmt.Errorf("%s is there twice; give the objects names", ref)
		}
		if owner, found := r.owners[id]; found {
			return fmt.Errorf("%s is kept by the component %s already", ref, owner)
		}
		mine[id] = true
	}
	for id := range mine {
		r.owners[id] = node.component
	}
	return nil
}

// claimOf is what the inventory shall know before the node runs.
func (r *run) claimOf(place int) claim {
	node := &r.graph.nodes[place]
	c := claim{unit: node.unit, Undo: node.deleter != nil}
	if k := r.nodes[place].kept; k != nil {
		c.Desired = k.desired
	}
	return c
}

// visit runs one node.
func (r *run) visit(ctx context.Context, place int) (Readiness, error) {
	node := &r.graph.nodes[place]
	ctx = r.nodes[place].with(ctx)
	if err := node.resource.Reconcile(ctx); err != nil {
		return r.waited(err)
	}
	if node.always {
		return Ready(), nil
	}
	readiness, err := node.resource.Ready(ctx)
	if err != nil {
		return r.waited(err)
	}
	return readiness, nil
}

// waited makes a deployerlib.WaitFor what it says: not ready yet.
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

// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
)

// run is the state of one walk of the graph for one deploy item.
type run struct {
	graph    *Graph
	item     *lsv1alpha1.DeployItem // the run never modifies the item
	session  session
	target   client.Client // nil if the item has no target
	log      logr.Logger
	parallel int

	config any // the decoded configuration; nil if the graph was not built with NewBuilderOf

	nodes  []nodeRun
	visits []nodeContext // by index of the node

	mu              sync.Mutex
	current         *walk                   // the current walk; nil before it begins
	owners          map[apply.Ref]string    // the component of each object
	outputs         map[int][]*output       // by index of the node
	claimed         map[int]bool            // the indexes of nodes that foresee omits, because they have been claimed or foreseen
	expectedOutputs map[int][]*output       // the expected outputs of nodes that have not been visited yet, by index of the node
	prepared        map[int][]apply.Desired // the objects that were prepared last, by index of the node
	done            map[string]error        // the errors of exports whose objects are done and no longer exist, by name
	requestedDelay  time.Duration           // the requested time until the next run, or 0
}

// newRun returns a run of at most parallel components at once. The item is not copied and must not change during the
// run. The client of the target, reached, may be nil.
func newRun(g *Graph, item *lsv1alpha1.DeployItem, s session, reached client.Client, log logr.Logger, parallel int) *run {
	r := &run{
		graph: g, item: item, session: s, target: reached, log: log, parallel: parallel,
		nodes: make([]nodeRun, len(g.nodes)), visits: make([]nodeContext, len(g.nodes)),
		owners: map[apply.Ref]string{}, outputs: map[int][]*output{}, claimed: map[int]bool{}, expectedOutputs: map[int][]*output{}, prepared: map[int][]apply.Desired{},
	}
	for place := range g.nodes {
		node := &r.nodes[place]
		node.run, node.place, node.component = r, place, g.nodes[place].component
	}
	return r
}

// visitAll visits each component at most once, and returns the states of all components. The result `next` is the time
// until the next run that a Timer, a Poll or a deployerlib.WaitFor requests. Zero means that none of them requests a
// run.
func (r *run) visitAll(ctx context.Context) (w *walkResult, next time.Duration) {
	under := r.graph.newWalk(r)
	r.mu.Lock()
	r.current = under
	r.mu.Unlock()
	w = under.run(ctx, r.parallel)
	next = minDuration(r.graph.timer, r.requestedDelay)
	for place := range w.states {
		if state := w.states[place].State; state == StateProgressing || state == StateFailed {
			next = minDuration(next, r.graph.nodes[place].poll)
		}
	}
	return w, next
}

// requestRecheck requests a recheck of a component because one of its objects has changed. It reports whether the
// current walk will recheck the component.
func (r *run) requestRecheck(component string) bool {
	r.mu.Lock()
	under := r.current
	r.mu.Unlock()
	place, found := r.graph.index[component]
	return found && under != nil && under.requestRecheck(place)
}

// prepare gets the desired objects of a node, and adds them to the inventory.
func (r *run) prepare(ctx context.Context, place int) error {
	of := &r.graph.nodes[place]
	if of.preparer == nil && of.deleter == nil {
		return nil
	}
	c := claim{Unit: of.unit, Undo: of.deleter != nil}
	if of.preparer != nil {
		desired, err := r.nodes[place].prepare(ctx)
		faults, err := splitInstanceErrors(err)
		if err != nil {
			return err
		}
		r.nodes[place].prepared, c.Desired = &preparedObjects{desired: desired, err: faults}, desired
	}
	err := r.claim(ctx, place, c)
	if err == nil || ctx.Err() != nil {
		return err
	}
	faulty, faults, err := groupErrorsByInstance(c.Desired, err)
	if err != nil {
		return err
	}
	c.Desired = withoutInstances(c.Desired, faulty)
	r.nodes[place].prepared = &preparedObjects{desired: c.Desired, err: errors.Join(r.nodes[place].prepared.err, newInstanceErrors(faults))}
	return r.claim(ctx, place, c)
}

// claim adds the objects of a node to the inventory.
func (r *run) claim(ctx context.Context, place int, c claim) error {
	return r.session.Claim(ctx, c, func() []claim {
		r.markClaimed(place)
		return r.prepareClaims(ctx)
	})
}

// prepareClaimsTimeout is the maximum duration of foresee.
const prepareClaimsTimeout = 50 * time.Millisecond

// prepareClaims returns claims for the nodes that have no claim yet. A claim contains the objects that a node will
// write, if their names are already known. With these claims, the inventory is stored once for all nodes instead of
// once for each node. Except for the records of Delete, the claims have no other effect, and Prepare is called again
// when the node is visited. If a node has a method Delete, its claim records that Delete must be called later. It
// records this only if the node may be visited now.
func (r *run) prepareClaims(ctx context.Context) (claims []claim) {
	ctx, cancel := context.WithTimeout(ctx, prepareClaimsTimeout)
	defer cancel()
	for _, place := range r.graph.order {
		if ctx.Err() != nil || !r.markClaimed(place) {
			continue
		}
		c := claim{Unit: r.graph.nodes[place].unit, Undo: r.graph.nodes[place].deleter != nil && r.current.isOpen(place)}
		if r.graph.nodes[place].preparer != nil {
			node := &nodeRun{run: r, place: place, component: c.Component, namesOnly: true}
			if desired, err := node.prepareNames(ctx); err == nil {
				c.Desired = desired
			}
		}
		claims = append(claims, c)
	}
	return claims
}

// markClaimed records that the claim of a node is created, so that later calls of foresee omit the node. It reports
// whether this is the first call for the node.
func (r *run) markClaimed(place int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.claimed[place]
	r.claimed[place] = true
	return !before
}

// prepareNames returns the desired objects of a node that has not been visited yet.
func (n *nodeRun) prepareNames(ctx context.Context) (desired []apply.Desired, err error) {
	defer recoverPanic(&err)
	return n.prepare(ctx)
}

// prepare calls Prepare of a node and records that the returned objects belong to the node. It returns an error if one
// of these objects belongs to another component. If the error is a instanceErrors, the objects of the other instances
// are returned, too.
func (n *nodeRun) prepare(ctx context.Context) ([]apply.Desired, error) {
	desired, err := n.run.graph.nodes[n.place].preparer.Prepare(n.newContext(ctx))
	faults, err := splitInstanceErrors(err)
	if err != nil {
		return nil, err
	}
	if desired, err = n.addIdentities(desired); err != nil {
		return nil, err
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	desired, foreign, err := n.recordOwners(desired)
	if err != nil {
		return nil, err
	}
	if len(foreign) > 0 {
		faults = newInstanceErrors(append(foreign, faults))
	}
	outs := make([]*output, len(desired))
	for i, d := range desired {
		outs[i] = &output{instance: getInstance(d.Object), ref: apply.ToRef(d.Object)}
	}
	n.run.expectedOutputs[n.place] = outs
	if !reflect.DeepEqual(n.run.prepared[n.place], desired) {
		n.run.prepared[n.place] = desired
	}
	return n.run.prepared[n.place], faults // equal objects stay the same, so the session need not prepare them again
}

// recordOwners records that objects belong to the node. It returns these objects. An instance of a ForEach with an
// object that another instance or another component has returned has an error, and its objects are omitted. The caller
// holds the lock of the run.
func (n *nodeRun) recordOwners(desired []apply.Desired) (mine []apply.Desired, faults []error, err error) {
	seen, faulty := map[apply.Ref]bool{}, map[string]bool{}
	for _, d := range desired {
		ref, instance := apply.ToRef(d.Object), getInstance(d.Object)
		id := target.WithoutVersion(ref)
		fault := error(nil)
		if owner, found := n.run.owners[id]; found && owner != n.component {
			fault = fmt.Errorf("%s already belongs to the component %s", ref, owner)
		}
		if seen[id] {
			fault = fmt.Errorf("the component returns %s twice; give its objects different names", ref)
		}
		seen[id] = true
		switch {
		case fault == nil:
		case instance == "":
			return nil, nil, fault
		default:
			faulty[instance] = true
			faults = append(faults, fmt.Errorf("instance %q: %w", instance, fault))
		}
	}
	mine = withoutInstances(desired, faulty)
	for _, d := range mine {
		n.run.owners[target.WithoutVersion(apply.ToRef(d.Object))] = n.component
	}
	return mine, faults, nil
}

// visit prepares and reconciles one node, and returns its readiness.
func (r *run) visit(ctx context.Context, place int) (Readiness, error) {
	if err := r.prepare(ctx, place); err != nil {
		return Readiness{}, err
	}
	node := &r.graph.nodes[place]
	visit := &r.visits[place]
	visit.Context, visit.node = ctx, &r.nodes[place]
	ctx = visit
	if err := node.resource.Reconcile(ctx); err != nil {
		return r.convertWait(Readiness{}, err)
	}
	if node.alwaysReady {
		return Ready(), nil
	}
	return r.checkReadiness(ctx, node)
}

// recheck calls the Ready of a node again.
func (r *run) recheck(ctx context.Context, place int) (Readiness, error) {
	node := &r.nodes[place]
	if node.prepared != nil {
		for _, o := range node.prepared.outcomes {
			r.session.Forget(o.Ref)
		}
	}
	return r.checkReadiness(node.newContext(ctx), &r.graph.nodes[place])
}

func (r *run) checkReadiness(ctx context.Context, node *node) (Readiness, error) {
	return r.convertWait(node.resource.Ready(ctx))
}

// convertWait converts a deployerlib.WaitFor to a Readiness that is not ready. If err is nil or any other error, it
// returns the arguments unchanged.
func (r *run) convertWait(readiness Readiness, err error) (Readiness, error) {
	reason, after, waits := deployerlib.AsWait(err)
	after = r.graph.limit.Apply(r.log, "WaitFor", after)
	if !waits {
		return readiness, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requestedDelay = minDuration(r.requestedDelay, after)
	return NotReady("%s", reason), nil
}

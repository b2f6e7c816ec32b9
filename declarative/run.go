// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/upkeep"
)

// run is one call for one item.
type run struct {
	deployer *deployer

	item     *lsv1alpha1.DeployItem
	up       *upkeep.Run
	status   *providerStatus
	memory   *memory
	target   *lsv1alpha1.Target
	observer *observer // nil before connect
	wished   bool      // requested by this deployer, so no one else waits for it

	unobserved map[schema.GroupKind]bool // kinds that no informer covers

	skipped map[apply.Ref]apply.Entry // entries of children that the engine did not get
}

// begin reads the provider status.
func (d *deployer) begin(ctx context.Context, di *lsv1alpha1.DeployItem) (*run, error) {
	status, err := decodeStatus(di.Status.ProviderStatus)
	if err != nil {
		return nil, err
	}
	r := &run{deployer: d, item: di, status: status, memory: d.memories.of(ctx, di)}
	r.up, err = d.keeper.Begin(ctx, di, status.inventory, r.note)
	return r, err
}

// note stores an inventory in the provider status, in memory.
func (r *run) note(inventory apply.Inventory) error {
	r.status.inventory = r.keepSkipped(inventory)
	return r.status.store(r.item)
}

// connect opens the item's target.
func (r *run) connect(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if r.observer != nil {
		return nil
	}
	if err := r.up.Connect(ctx, target); err != nil {
		return err
	}
	if !r.up.Cluster.Keep(r.item.UID) {
		return errClosed
	}
	if old := r.memory.cluster; old != nil && old != r.up.Cluster {
		old.Release(r.item.UID)
		r.memory.written, r.memory.settled = map[apply.Ref]string{}, nil
	}
	r.memory.cluster = r.up.Cluster
	r.target = target.Target
	var err error
	r.observer, err = r.deployer.observerOf(r.up.Cluster)
	return err
}

var errClosed = errors.New("the target was just closed")

// failed ends a run that could not do its work, and keeps its triggers for the next one.
func (r *run) failed(err error) error {
	_, giveBack := r.up.Take()
	giveBack()
	return err
}

// sync calls the handler and applies its response.
func (r *run) sync(ctx context.Context) error {
	seen, err := r.look(ctx)
	if err != nil {
		return r.failed(err)
	}
	if err := r.restore(seen); err != nil {
		return r.failed(err)
	}
	req, err := NewRequest(r.item, r.target, seen...)
	if err != nil {
		return r.failed(err)
	}
	response, desired, err := r.ask(ctx, req)
	if err != nil {
		return r.failed(err)
	}
	r.tellMissing(desired, req.Children)
	if err := r.up.LeaveFirst(ctx, apply.Options{}, nil); err != nil {
		return r.failed(err)
	}
	prints := printsOf(desired, req.Children)
	report, err := r.up.Apply(ctx, r.skip(desired, prints), apply.Options{Concurrency: r.deployer.options.Concurrency, KeepGoing: true, RefuseUnowned: true})
	r.memory.remember(r.up.Inventory, report)
	r.memory.settle(prints, report, err)
	r.again(response)
	if err != nil {
		return err
	}
	return r.outcome(ctx, response, report)
}

// ask calls Sync and stores its status. If it fails, nothing has been written.
func (r *run) ask(ctx context.Context, req *SyncRequest) (response *SyncResponse, desired []apply.Desired, err error) {
	c := r.call(ctx, functionSync)
	defer c.end()
	if response, c.err = r.deployer.handler.Sync(ctx, req); c.err != nil {
		if response != nil {
			return nil, nil, errors.Join(c.err, r.setStatus(response.Status)) // c.err remains the handler's error
		}
		return nil, nil, c.err
	}
	desired, c.err = r.take(ctx, response)
	if c.err != nil {
		c.result = resultRefused
		return nil, nil, c.err
	}
	if found := r.deployer.stability.observe(req, desired); r.tellUnstable(found) {
		c.result = resultUnstable
	}
	return response, desired, nil
}

// take converts the handler's response and stores its status.
func (r *run) take(ctx context.Context, response *SyncResponse) ([]apply.Desired, error) {
	if response == nil {
		return nil, errors.New("the handler returned neither a response nor an error")
	}
	owns, err := r.owns(ctx)
	if err != nil {
		return nil, err
	}
	desired, err := r.deployer.options.Desired(r.item, response, owns)
	if err != nil {
		return nil, r.up.ApplyError(err)
	}
	return desired, r.setStatus(response.Status)
}

// setStatus stores a handler's status in the item, in memory. If it is nil, the stored one stays.
func (r *run) setStatus(status any) error {
	if err := r.status.set(status, r.item.Generation); err != nil {
		return err
	}
	return r.status.store(r.item)
}

// These are the functions of a handler in metrics.
const (
	functionSync     = "sync"
	functionFinalize = "finalize"
)

// call is one call of the handler.
type call struct {
	r        *run
	log      logr.Logger
	function string
	began    time.Time
	result   string // if empty, err determines it
	err      error  // result of the call
}

var errPanicked = errors.New("the handler panicked")

// call begins a call of the handler. A call that ends without a result, by a panic, counts as failed.
func (r *run) call(ctx context.Context, function string) *call {
	return &call{r: r, log: logr.FromContextOrDiscard(ctx), function: function, began: r.deployer.now(), err: errPanicked}
}

// end counts a call. A wait is not a failure.
func (c *call) end() {
	if _, _, waits := deployerlib.AsWait(c.err); waits {
		c.err, c.result = nil, resultWaiting
	}
	failures := c.r.memory.ended(c.err)
	if c.err != nil {
		c.log.V(1).Info("the handler failed", "function", c.function, "inARow", failures, "reason", c.err.Error())
	}
	switch {
	case c.result != "":
	case c.err != nil:
		c.result = resultError
	default:
		c.result = resultOK
	}
	c.r.deployer.metrics.called(c.function, c.result, c.r.deployer.now().Sub(c.began))
}

// again requests the next call that no change triggers.
func (r *run) again(response *SyncResponse) {
	after := response.ResyncAfter
	if every := r.deployer.options.Resync; every > 0 && (after <= 0 || every < after) {
		after = every
	}
	if r.partly() && (after <= 0 || after > pollUnobserved) {
		after = pollUnobserved
	}
	if after > 0 {
		r.deployer.wake(r.memory, r.deployer.now().Add(after))
	}
}

// partly reports whether the item has children of a kind that no informer covers.
func (r *run) partly() bool {
	return slices.ContainsFunc(r.up.Inventory.Entries, func(entry apply.Entry) bool { return r.unobserved[entry.Ref().GVK().GroupKind()] })
}

// pollUnobserved is how often the handler is called if informers do not cover all children.
const pollUnobserved = time.Minute

// outcome returns how a run ends that has applied all children.
func (r *run) outcome(ctx context.Context, response *SyncResponse, report apply.Report) error {
	background := contract.IsFinal(deployerlib.StoredPhase(ctx))
	if response.Wait != "" && !background {
		return deployerlib.WaitFor(contract.OneLine(response.Wait, maxReason), r.poll(response))
	}
	thorough, giveBack := r.up.Take()
	exported, err := r.export(ctx, response, thorough)
	if err != nil {
		giveBack()
		return err
	}
	cleaned, err := r.cleanUp(ctx)
	if err != nil {
		return err
	}
	r.up.Finished()
	if !exported && !cleaned && r.wished && !thorough && report.Applied+report.Deleted == 0 {
		return deployerlib.ErrUnchanged
	}
	return nil
}

// cleanUp deletes the children in clusters that the item has left. It reports whether something changed.
func (r *run) cleanUp(ctx context.Context) (bool, error) {
	if r.deployer.options.OrphanChildren && len(r.up.Inventory.Former) > 0 {
		return true, r.up.Abandon("the deployer leaves children where they are")
	}
	return r.up.CleanUp(ctx, apply.Options{}, nil)
}

// export stores what the handler exports, unless it is known to be stored. It reports whether it wrote something.
func (r *run) export(ctx context.Context, response *SyncResponse, thorough bool) (bool, error) {
	if response.Exports == nil || response.Wait != "" {
		return false, nil
	}
	raw, err := json.Marshal(response.Exports)
	if err != nil {
		return false, deployerlib.ConfigError("status.exportRef", "the exports cannot be encoded: %s", err.Error())
	}
	if !thorough && bytes.Equal(raw, r.memory.exports) {
		return false, nil
	}
	if len(response.Exports) == 0 {
		err = deployerlib.DeleteExport(ctx, r.deployer.keeper.Secrets(), r.item)
	} else {
		err = deployerlib.WriteExport(ctx, r.deployer.keeper.Secrets(), r.item, json.RawMessage(raw))
	}
	if err == nil {
		r.memory.exports = raw
	}
	return true, err
}

const (
	maxReason = 1024
	// These are the times after which a waiting item is called again although no child changed.
	pollObserved = 30 * time.Second
	pollPartly   = 5 * time.Second
)

// poll returns the time after which a waiting item is called again if nothing changes before.
func (r *run) poll(response *SyncResponse) time.Duration {
	after := pollObserved
	if r.partly() {
		after = pollPartly
	}
	if response.ResyncAfter > 0 {
		after = min(after, response.ResyncAfter)
	}
	return after
}

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// run contains the data of one call of the deployer for one item.
type run struct {
	deployer *deployer
	log      logr.Logger

	item        *lsv1alpha1.DeployItem
	managed     *managed.Run
	status      *providerStatus
	memory      *memory
	target      *lsv1alpha1.Target
	watcher     *observe.Watcher // nil before connect
	isRequested bool             // this deployer itself requested the run, so its time need not be stored if nothing changes

	done       []apply.Ref               // the children that have finished their work and no longer exist
	unobserved map[schema.GroupKind]bool // kinds for which not all children are watched
}

// begin starts a run. It reads the provider status of the item.
func (d *deployer) begin(ctx context.Context, di *lsv1alpha1.DeployItem) (*run, error) {
	status, err := decodeStatus(di.Status.ProviderStatus)
	if err != nil {
		return nil, err
	}
	r := &run{deployer: d, log: logr.FromContextOrDiscard(ctx), item: di, status: status}
	if r.managed, err = d.manager.Begin(ctx, di, status.inventory, r.setInventory); err != nil {
		return nil, err
	}
	r.memory = d.getMemory(r.managed)
	return r, nil
}

// setInventory stores an inventory in the provider status of the item. It changes the item only in memory.
func (r *run) setInventory(inventory apply.Inventory) error {
	r.status.inventory = inventory
	return r.status.store(r.item)
}

// connect opens the item's target.
func (r *run) connect(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if r.watcher != nil {
		return nil
	}
	if err := r.managed.Connect(ctx, target); err != nil {
		return err
	}
	if !r.managed.Cluster.KeepOpen(r.item.UID) {
		return errClosed
	}
	if old := r.memory.cluster; old != nil && old != r.managed.Cluster {
		old.StopKeepingOpen(r.item.UID)
		r.memory.unchanged = nil
	}
	r.memory.cluster = r.managed.Cluster
	r.target = target.Target
	r.watcher = r.managed.Cluster.Watcher()
	return nil
}

var errClosed = errors.New("the target client was closed during the call")

// failed ends a run that could not do its work, and returns `err`. The next run handles the triggers of this run.
func (r *run) failed(err error) error {
	r.managed.ReturnTriggers()
	return err
}

// sync calls the handler and applies its response.
func (r *run) sync(ctx context.Context) error {
	if err := r.restoreInventory(ctx); err != nil {
		return r.failed(err)
	}
	seen, err := r.listChildren(ctx)
	if err != nil {
		return r.failed(err)
	}
	req, err := r.request(seen)
	if err != nil {
		return r.failed(err)
	}
	response, desired, err := r.callSync(ctx, req)
	if err != nil {
		return r.failed(err)
	}
	r.setChildMissing(desired, req.Children)
	if err := r.managed.CleanUpFormerFirst(ctx, apply.Options{}, nil); err != nil {
		return r.failed(err)
	}
	versions := r.memory.markUnchanged(desired, req.Children)
	report, err := r.managed.Apply(ctx, desired, apply.Options{Concurrency: r.deployer.options.Concurrency, RefuseUnowned: true})
	r.memory.recordUnchanged(versions, report, err)
	if after := r.newSchedule(response).next(); after > 0 {
		r.deployer.requestRun(r.memory, r.deployer.now().Add(after))
	}
	if err != nil {
		return err
	}
	return r.finishRun(ctx, response, report)
}

// request returns the request for the handler.
func (r *run) request(seen []*unstructured.Unstructured) (*SyncRequest, error) {
	req, err := newRequest(r.item, r.target, r.status, seen)
	if err == nil {
		slices.SortFunc(r.done, compareRefs)
		req.Finished = r.done
	}
	return req, err
}

// callSync calls Sync and stores the status of the response. It writes nothing to the target.
func (r *run) callSync(ctx context.Context, req *SyncRequest) (response *SyncResponse, desired []apply.Desired, err error) {
	c := r.startCall(ctx, functionSync)
	defer c.recordEnd()
	if response, c.err = r.deployer.handler.Sync(ctx, req.clone()); c.err != nil {
		if response != nil {
			return nil, nil, errors.Join(c.err, r.setStatus(response.Status)) // c.end reports the handler's error
		}
		return nil, nil, c.err
	}
	desired, c.err = r.acceptResponse(ctx, response)
	if c.err != nil {
		c.result = resultRefused
		return nil, nil, c.err
	}
	c.ended = r.deployer.now()
	repeat := func(req *SyncRequest) ([]apply.Desired, error) { return r.callSyncAgain(ctx, req) }
	if found := r.deployer.stability.observe(&r.memory.stabilityState, req, desired, repeat); r.setUnstableHandler(found) {
		c.result = resultUnstable
	}
	return response, desired, nil
}

// callSyncAgain calls Sync with an earlier request and returns the desired children. The result has no effect on the
// item and its children.
func (r *run) callSyncAgain(ctx context.Context, req *SyncRequest) (desired []apply.Desired, err error) {
	began, result := r.deployer.now(), resultError
	defer func() { r.deployer.metrics.recordCall(functionRepeat, result, r.deployer.now().Sub(began)) }()
	response, err := r.deployer.handler.Sync(ctx, req.clone())
	if err != nil {
		return nil, err
	}
	desired, err = r.toDesired(ctx, response)
	if err != nil {
		result = resultRefused
		return nil, err
	}
	result = resultOK
	return desired, nil
}

// acceptResponse converts the children in the handler's response to desired objects, and stores the status in the
// response.
func (r *run) acceptResponse(ctx context.Context, response *SyncResponse) ([]apply.Desired, error) {
	desired, err := r.toDesired(ctx, response)
	if err != nil {
		return nil, err
	}
	return desired, r.setStatus(response.Status)
}

// toDesired converts the children in the handler's response to desired objects.
func (r *run) toDesired(ctx context.Context, response *SyncResponse) ([]apply.Desired, error) {
	if response == nil {
		return nil, errors.New("the handler returned neither a response nor an error")
	}
	home, err := r.isHome(ctx)
	if err != nil {
		return nil, err
	}
	desired, err := r.deployer.options.ToDesired(r.item, response, r.managed.Cluster.RESTMapper(), home)
	if err != nil {
		return nil, r.managed.ConvertApplyError(err)
	}
	return desired, nil
}

// setStatus stores a handler's status in the item. It changes the item only in memory. If `status` is nil, the stored
// status does not change.
func (r *run) setStatus(status any) error {
	if err := r.status.set(status, r.item.Generation); err != nil {
		return err
	}
	return r.status.store(r.item)
}

// These are the values of the label "function" in metrics.
const (
	functionSync     = "sync"
	functionFinalize = "finalize"
	functionRepeat   = "repeat" // a call of Sync that checks whether the handler is unstable
)

// call is one call of the handler.
type call struct {
	r        *run
	log      logr.Logger
	function string
	began    time.Time
	ended    time.Time // the zero value if the call ends with the method `end`
	result   string    // the result for the metrics; if it is empty, the method `end` derives it from the field `err`
	err      error     // the error of the call
}

var errPanicked = errors.New("the handler panicked")

// startCall records the beginning of a call of the handler. If the handler panics, the call counts as failed.
func (r *run) startCall(ctx context.Context, function string) *call {
	return &call{r: r, log: logr.FromContextOrDiscard(ctx), function: function, began: r.deployer.now(), err: errPanicked}
}

// recordEnd records the result of the call. A deployerlib.WaitFor does not count as a failure.
func (c *call) recordEnd() {
	if _, _, waits := deployerlib.AsWait(c.err); waits {
		c.err, c.result = nil, resultWaiting
	}
	if c.err != nil {
		c.r.memory.countError()
		c.log.V(1).Info("the handler failed", "function", c.function, "reason", c.err.Error())
	}
	switch {
	case c.result != "":
	case c.err != nil:
		c.result = resultError
	default:
		c.result = resultOK
	}
	if c.ended.IsZero() {
		c.ended = c.r.deployer.now()
	}
	c.r.deployer.metrics.recordCall(c.function, c.result, c.ended.Sub(c.began))
}

// finishRun ends a run after all children have been applied. It returns the error of the run.
func (r *run) finishRun(ctx context.Context, response *SyncResponse, report apply.Report) error {
	background := contract.IsFinal(deployerlib.StoredPhase(ctx))
	if response.Wait != "" && !background {
		return deployerlib.WaitFor(contract.OneLine(response.Wait, maxReason), r.newSchedule(response).poll())
	}
	exported, err := r.setExports(ctx, response, background)
	if err != nil {
		return err
	}
	cleaned, err := r.cleanUp(ctx, response)
	if err != nil {
		return err
	}
	r.managed.Finish()
	if !exported && !cleaned && r.isRequested && !r.managed.IsResyncForced() && report.Applied+report.Deleted == 0 {
		return deployerlib.ErrUnchanged
	}
	return nil
}

// cleanUp deletes the children that remain in earlier clusters after the item has moved to another cluster. It does
// nothing while the handler waits, because the new deployment has not succeeded yet. It reports whether something
// changed.
func (r *run) cleanUp(ctx context.Context, response *SyncResponse) (bool, error) {
	switch {
	case response.Wait != "":
		return false, nil
	case r.deployer.options.OrphanChildren && len(r.managed.Inventory.Former) > 0:
		return true, r.managed.ReleaseFormer("the deployer never deletes children")
	}
	return r.managed.TryCleanUpFormer(ctx, apply.Options{}, nil)
}

// setExports stores the exports of a response. Each job reads the export Secret, because another client may have
// changed it. A background run only stores exports that differ from those of the previous run. The first result reports
// whether setExports has accessed the Secret.
func (r *run) setExports(ctx context.Context, response *SyncResponse, background bool) (bool, error) {
	if response.Exports == nil || response.Wait != "" {
		return false, nil
	}
	raw, err := json.Marshal(response.Exports)
	if err != nil {
		return false, deployerlib.NewConfigError("status.exportRef", "the exports cannot be encoded: %s", err.Error())
	}
	if background && !r.managed.IsResyncForced() && bytes.Equal(raw, r.memory.exports) {
		return false, nil
	}
	if len(response.Exports) == 0 {
		err = deployerlib.DeleteExport(ctx, r.deployer.manager.GetSecretClient(), r.item)
	} else {
		err = deployerlib.WriteExport(ctx, r.deployer.manager.GetSecretClient(), r.item, json.RawMessage(raw))
	}
	if err == nil {
		r.memory.exports = raw
	}
	return true, err
}

const maxReason = 1024

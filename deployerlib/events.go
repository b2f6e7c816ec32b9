// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
)

type (
	request   = reconcile.Request
	workQueue = workqueue.TypedRateLimitingInterface[request]
	diHandler = handler.TypedFuncs[*lsv1alpha1.DeployItem, request]
)

// queue is the queue of the controller.
type queue struct {
	mu sync.Mutex
	q  workQueue
	// early contains the items that were added before the controller started, with their priorities.
	early map[types.NamespacedName]int
}

// start receives the queue of the controller and adds the items in q.early to that queue. The method is registered as a
// watch source, so the controller calls it at the start.
func (q *queue) start(_ context.Context, running workQueue) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.q = running
	for key, priority := range q.early {
		addToQueue(running, key, priority)
	}
	q.early = nil
	return nil
}

// add queues an item.
func (q *queue) add(key types.NamespacedName, priority int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.q == nil {
		if q.early == nil {
			q.early = map[types.NamespacedName]int{}
		}
		q.early[key] = priority
		return
	}
	addToQueue(q.q, key, priority)
}

// addToQueue adds a key to a queue. It sets the priority of the key if the queue supports priorities.
func addToQueue(q workQueue, key types.NamespacedName, priority int) {
	req := request{NamespacedName: key}
	if p, ok := q.(priorityqueue.PriorityQueue[request]); ok {
		p.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, req)
		return
	}
	q.Add(req)
}

// dispatcher converts events and triggers to queue entries, and cancels calls that must end.
type dispatcher struct {
	itemType lsv1alpha1.DeployItemType
	selector labels.Selector
	shard    Shard
	client   client.Reader // reads from the cache
	tracker  *itemstate.Tracker
	queue    *queue
	evaluate func(*lsv1alpha1.DeployItem) contract.Decision
	now      func() time.Time
}

// isMine reports whether an item has the type and the labels of this deployer, and belongs to its shard.
func (d *dispatcher) isMine(di *lsv1alpha1.DeployItem) bool {
	return di.Spec.Type == d.itemType && d.selector.Matches(toLabelSet(di)) && d.shard.Contains(di.Namespace)
}

// newItemHandler returns the handler for events about items.
func (d *dispatcher) newItemHandler() diHandler {
	return diHandler{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*lsv1alpha1.DeployItem], q workQueue) {
			if d.isMine(e.Object) {
				key := client.ObjectKeyFromObject(e.Object)
				d.tracker.Get(key).RecordEvent(e.Object, d.now())
				addToQueue(q, key, d.createPriority(e))
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*lsv1alpha1.DeployItem], q workQueue) {
			if d.isMine(e.ObjectNew) {
				d.handleUpdate(e.ObjectOld, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*lsv1alpha1.DeployItem], q workQueue) {
			if d.isMine(e.Object) {
				d.handleDelete(e.Object, q)
			}
		},
	}
}

// createPriority returns the priority of a create event. In the initial list, only items for which a job, a deletion or
// a user request is due precede periodic runs.
func (d *dispatcher) createPriority(e event.TypedCreateEvent[*lsv1alpha1.DeployItem]) int {
	if decision := d.evaluate(e.Object); e.IsInInitialList && (!decision.Due || decision.Background) {
		return priorityPeriodic
	}
	return getPriority(e.Object)
}

// handleUpdate handles an update of an item. It queues the item before it cancels the running call, so that exactly one
// reconcile follows.
func (d *dispatcher) handleUpdate(old, di *lsv1alpha1.DeployItem, q workQueue) {
	key := client.ObjectKeyFromObject(di)
	item := d.tracker.Get(key)
	item.RecordEvent(di, d.now())
	if item.Observe(old, di) {
		addToQueue(q, key, getPriority(di))
	}
	item.CancelFor(di)
}

// handleDelete handles the deletion of an item. It cancels the running call, and queues a last reconcile to remove the
// item's state.
func (d *dispatcher) handleDelete(di *lsv1alpha1.DeployItem, q workQueue) {
	key := client.ObjectKeyFromObject(di)
	item := d.tracker.Get(key)
	item.AllowReconcile()
	addToQueue(q, key, priorityJob)
	item.CancelCall()
}

// enqueueReferring requests a reconcile of the items of a namespace that refer to a changed object, even during the
// backoff after a failure, because the change may resolve the failure.
func (d *dispatcher) enqueueReferring(ctx context.Context, namespace string, refers func(*lsv1alpha1.DeployItem) bool) {
	list := &lsv1alpha1.DeployItemList{}
	if err := d.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range list.Items {
		if di := &list.Items[i]; d.isMine(di) && refers(di) {
			key := client.ObjectKeyFromObject(di)
			d.tracker.Get(key).AllowReconcile()
			d.queue.add(key, priorityPeriodic)
		}
	}
}

// enqueueWithLowPriority requests a reconcile at low priority.
func (d *dispatcher) enqueueWithLowPriority(key types.NamespacedName) {
	d.tracker.Get(key).Trigger()
	d.queue.add(key, priorityPeriodic)
}

// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

var (
	itemKind  = lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem")
	leaseKind = coordinationv1.SchemeGroupVersion.WithKind("Lease")
)

// itemHistory is what happened to an item so far.
type itemHistory struct {
	ended  map[string]lsv1alpha1.DeployItemPhase // the phase in which each job ended
	writer *Process                              // the replica that changed the item last
	// deletedBy contains the processes whose calls of Delete have succeeded.
	deletedBy map[*Process]bool
	// endedBy maps each job that a deployer has ended to the process.
	endedBy map[string]*Process
}

// checkWrite checks the invariants after a change in a server. The server calls it with its lock.
func (w *World) checkWrite(change Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := schema.GroupVersionKind{}
	for _, obj := range []object{change.Before, change.After} {
		if obj != nil {
			kind = obj.GroupVersionKind()
		}
	}
	var err error
	change.Late = w.isLate(change.Request)
	switch kind {
	case leaseKind:
		err = w.recordHolder(change)
	case itemKind:
		err = w.checkItemWrite(change)
	}
	if kind != leaseKind && kind.Kind != "Event" {
		w.writes++
	}
	change.Items, change.ByReplica = w.stored, change.Request.process.faulty
	if change.Target != "" && err == nil {
		err = w.checkTargetWrite(change)
	}
	if err == nil && w.scenario.CheckWrite != nil {
		err = w.scenario.CheckWrite(change)
	}
	if err != nil {
		w.failLocked(fmt.Errorf("%w: %s changed version %d", err, change.Request, change.Version))
	}
}

// recordHolder records the holder of the lease for leader election.
func (w *World) recordHolder(change Write) error {
	lease := &coordinationv1.Lease{}
	if change.After != nil {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(change.After.Object, lease); err != nil {
			return err
		}
	}
	w.holder = nil
	if name := lease.Spec.HolderIdentity; name != nil && *name != "" {
		w.holder = change.Request.process
	}
	return nil
}

// checkItemWrite checks a change of an item.
func (w *World) checkItemWrite(change Write) error {
	before, after, err := decodeItems(change)
	if err != nil {
		return err
	}
	history := w.getHistory(cmp.Or(before.UID, after.UID))
	w.stored = slices.DeleteFunc(slices.Clone(w.stored), func(di *lsv1alpha1.DeployItem) bool { return di.UID == before.UID })
	if change.After != nil {
		w.stored = append(w.stored, after)
	} else {
		w.deleted[keyOfItems]++
	}
	if p := change.Request.process; p.faulty {
		if err := checkLease(change.Request, history); err != nil {
			return err
		}
		history.writer = p
		if err := checkOwnFields(before, after); change.After != nil && err != nil {
			return err
		}
		// The next leader may already have checked the item when a late write ends the job. It then cancels its call.
		if job := after.Status.JobIDFinished; job != before.Status.JobIDFinished && !change.Late {
			history.endedBy[job] = p
		}
	}
	return errors.Join(history.checkJobs(before, after, change.Request.process.faulty), history.checkEnd(change, before, after))
}

// getHistory returns the history of an item.
func (w *World) getHistory(uid types.UID) *itemHistory {
	history := w.items[uid]
	if history == nil {
		history = &itemHistory{ended: map[string]lsv1alpha1.DeployItemPhase{}, endedBy: map[string]*Process{}, deletedBy: map[*Process]bool{}}
		w.items[uid] = history
	}
	return history
}

// decodeItems returns the states of an item. A state that does not exist is an empty item.
func decodeItems(change Write) (before, after *lsv1alpha1.DeployItem, err error) {
	before, after = &lsv1alpha1.DeployItem{}, &lsv1alpha1.DeployItem{}
	if change.Before != nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(change.Before.Object, before)
	}
	if change.After != nil {
		err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(change.After.Object, after))
	}
	return before, after, err
}

// errWithoutLease is the violation by a replica that sends a write while another process holds the lease, or none.
var errWithoutLease = errors.New("a process sent a write without the lease")

// checkLease checks that a replica sends writes only while it holds the lease, and that the API server accepts no write
// of a former holder after a later holder has changed the item.
func checkLease(r Request, history *itemHistory) error {
	if r.holder != r.process {
		return errWithoutLease
	}
	if last := history.writer; last != nil && last.elected > r.process.elected {
		return fmt.Errorf("a process wrote an item after %s, which holds the lease now", last.Name)
	}
	return nil
}

// isLate reports whether a request of a replica is late, as Write.Late describes.
func (w *World) isLate(r Request) bool {
	p := r.process
	if !p.faulty || r.holder != p {
		return false
	}
	select {
	case <-r.gaveUp:
		if r.deleted < w.countDeletions(r) {
			return true
		}
	default:
	}
	return p.elected < w.elections || w.holder != nil && w.holder != p
}

// keyOfItems is the key in World.deleted for all items.
const keyOfItems = ""

// getKey returns the key of the object of a request in World.deleted.
func (r Request) getKey() string {
	return strings.Join([]string{r.target, r.Group, r.Resource, r.Namespace, cmp.Or(r.Name, r.created)}, "/")
}

// countDeletions returns how many items have been deleted, of any name, and how often a deployer has deleted the object of
// a request to a target.
func (w *World) countDeletions(r Request) int {
	count := w.deleted[keyOfItems]
	if r.target != "" {
		count += w.deleted[r.getKey()]
	}
	return count
}

// checkTargetWrite checks that a replica sends writes to targets only while it holds the lease, and records whether the
// write is late.
func (w *World) checkTargetWrite(change Write) error {
	if !change.ByReplica {
		return nil
	}
	if change.Request.holder != change.Request.process {
		return errWithoutLease
	}
	if change.After == nil {
		w.deleted[change.Request.getKey()]++
		return nil
	}
	w.late[change.After.GetUID()] = change.Late
	return nil
}

// checkOwnFields checks that a deployer changes neither the spec nor the fields of the status that belong to
// Landscaper.
func checkOwnFields(before, after *lsv1alpha1.DeployItem) error {
	switch {
	case !equality.Semantic.DeepEqual(before.Spec, after.Spec):
		return errors.New("a deployer changed the spec of an item")
	case before.Status.JobID != after.Status.JobID:
		return errors.New("a deployer changed the jobID of an item")
	}
	return nil
}

// checkJobs checks that each job ends exactly once, in a final phase, and that a job that has ended stays ended. Landscaper
// can still change the phase: it may interrupt a job that ends at the same moment.
func (h *itemHistory) checkJobs(before, after *lsv1alpha1.DeployItem, byReplica bool) error {
	finished := after.Status.JobIDFinished
	if after.UID == "" || finished == "" {
		return nil
	}
	if finished != before.Status.JobIDFinished {
		if finished != after.Status.JobID {
			return fmt.Errorf("the finished job %q is not the job %q of the item", finished, after.Status.JobID)
		}
		if phase, ended := h.ended[finished]; ended {
			return fmt.Errorf("the job %q ended again, after it had ended in phase %s", finished, phase)
		}
		h.ended[finished] = after.Status.Phase
	}
	if finished != after.Status.JobID {
		return nil
	}
	if !contract.IsFinal(after.Status.Phase) {
		return fmt.Errorf("the job %q ended in phase %s, which is not final", finished, after.Status.Phase)
	}
	if !byReplica {
		h.ended[finished] = after.Status.Phase
	}
	if phase := h.ended[finished]; phase != after.Status.Phase {
		return fmt.Errorf("the phase changed from %s to %s after the job %q had ended", phase, after.Status.Phase, finished)
	}
	return nil
}

// checkEnd checks that a deployer does not write the status of a finished item, apart from the results of background
// runs, and that it removes its finalizer only at the end of a deletion.
func (h *itemHistory) checkEnd(change Write, before, after *lsv1alpha1.DeployItem) error {
	if !change.Request.process.faulty || before.UID == "" {
		return nil
	}
	if change.After == nil {
		if before.DeletionTimestamp == nil || !h.deletedBy[change.Request.process] {
			return errors.New("a deployer removed an item before its Delete succeeded")
		}
		return nil
	}
	if before.Status.JobID == before.Status.JobIDFinished && before.Status.JobID != "" {
		status := *after.Status.DeepCopy()
		status.Conditions, status.ProviderStatus, status.LastReconcileTime = before.Status.Conditions, before.Status.ProviderStatus, before.Status.LastReconcileTime
		if !equality.Semantic.DeepEqual(status, before.Status) {
			return fmt.Errorf("a deployer wrote the status after the job %q had ended", before.Status.JobID)
		}
	}
	return nil
}

// becomeLeader numbers the leaders in the order of their elections.
func (p *Process) becomeLeader() {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.world.elections++
	p.elected = p.world.elections
	p.world.recordLocked("%s is elected after %s", p.Name, time.Since(p.world.start).Round(time.Millisecond))
}

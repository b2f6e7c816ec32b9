// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Action is what one reconcile does with an item. Each reconcile makes at most one deployer call.
type Action string

// The actions. If several apply, the first of abort, force-reconcile, delete, reconcile wins.
const (
	ActionNone           Action = ""
	ActionAbort          Action = "abort"
	ActionForceReconcile Action = "force-reconcile"
	ActionDelete         Action = "delete"
	ActionReconcile      Action = "reconcile"
)

// Options configures Evaluate.
type Options struct {
	// Revision forces a revision. If it is empty, [Detect] decides.
	Revision Revision
	// Now is the time of the reconcile. If it is zero, no deadline counts as passed.
	Now time.Time
}

// Decision is what has to be done with an item now. It is pure data.
type Decision struct {
	// Revision is the revision of the contract that this reconcile follows.
	Revision Revision
	// Action is what a run would do, whether it is due or forced. It is ActionNone only if nothing may run at all: the
	// item is ignored, is terminating without Landscaper's finalizer, or is nil.
	Action Action
	// Due reports that a run is due.
	Due bool
	// New reports that the due run begins with this reconcile. Start must be applied and persisted before the action.
	// New implies Due.
	New bool
	// Background reports that the run, or the run that a hook could force, is a background run on a finished job-ID
	// item.
	Background bool
	// Forceable reports that a ShouldReconcile hook may force a run. It is always set if Due is; see [Decision.Force].
	Forceable bool
	// Unchanged reports that updateOnChangeOnly makes the due job unnecessary. Unless a hook forces the run, the job
	// ends without a deployer call; see [FinishUnchanged].
	Unchanged bool
	// SkipUninstall reports that the deletion only removes the finalizer and does not call the deployer.
	SkipUninstall bool
	// Expired reports that the deadline has passed. The run ends as failed without a deployer call; see [TimedOut].
	Expired bool
	// NewJob reports a test-reconcile on a finished job. Start needs a new StartInfo.JobID.
	NewJob bool
	// Paused reports that [PausedAnnotation] holds everything back: nothing is due or forceable. It is not set if an
	// abort or a run in progress continues despite the pause.
	Paused bool
	// Held reports that something would be due if the item were not paused. It implies Paused; see [MarkPaused].
	Held bool
	// Remove lists the annotation keys to remove: after the start was persisted if New is set, immediately otherwise.
	// It does not contain force-reconcile or an abort that is still in progress; see [Outcome.Consumed].
	Remove []string
	// Reason says why a run is due or not.
	Reason Reason
}

// Reason says why a run is due or not. It is one word in CamelCase, such as NewJob or Finished.
type Reason string

// The reasons. The comments of those that start a run begin with "due".
const (
	reasonNoItem           Reason = "NoItem"           // the item is nil
	reasonUnknownRevision  Reason = "UnknownRevision"  // the forced revision does not exist
	reasonIgnored          Reason = "Ignored"          // annotation ignore on a final phase
	reasonNoFinalizer      Reason = "NoFinalizer"      // terminating without Landscaper's finalizer
	reasonAwaitingJob      Reason = "AwaitingJob"      // an Execution manages the item and has not requested a run yet
	reasonDeleteFailed     Reason = "DeleteFailed"     // Delete failed; no retry before a new operation, generation or job
	reasonPaused           Reason = "Paused"           // something would be due, but the item is paused
	reasonFinished         Reason = "Finished"         // the run has ended and nothing new is requested
	reasonNeverRun         Reason = "NeverRun"         // job ID: no job was ever finished, so no background run
	reasonDeletionPending  Reason = "DeletionPending"  // job ID: terminating, the job of the deletion is not there yet
	reasonGenerationMoved  Reason = "GenerationMoved"  // job ID: the spec changed, its job is not there yet
	reasonNotFinal         Reason = "NotFinal"         // job ID: finished job with a phase that is not final
	reasonOperation        Reason = "Operation"        // due: the operation annotation
	reasonGeneration       Reason = "Generation"       // due: generation differs from observedGeneration
	reasonNotStarted       Reason = "NotStarted"       // due: never started
	reasonInProgress       Reason = "InProgress"       // due: a run in progress continues
	reasonDeletion         Reason = "Deletion"         // due: terminating, and no Delete has run yet
	reasonNewJob           Reason = "NewJob"           // due: a job that has not started
	reasonUnchanged        Reason = "Unchanged"        // due: a new job, but updateOnChangeOnly is set and nothing changed
	reasonBackgroundOwed   Reason = "BackgroundOwed"   // due: a background run has to be retried
	reasonBackgroundForced Reason = "BackgroundForced" // due: force-reconcile on a finished job
)

// reasons are the reasons above.
var reasons = []Reason{
	reasonNoItem, reasonUnknownRevision, reasonIgnored, reasonNoFinalizer, reasonAwaitingJob, reasonDeleteFailed, reasonPaused,
	reasonFinished, reasonNeverRun, reasonDeletionPending, reasonGenerationMoved, reasonNotFinal, reasonOperation, reasonGeneration,
	reasonNotStarted, reasonInProgress, reasonDeletion, reasonNewJob, reasonUnchanged, reasonBackgroundOwed, reasonBackgroundForced,
}

// Reasons returns all reasons that a [Decision] can have.
func Reasons() []Reason { return slices.Clone(reasons) }

// Evaluate returns what has to be done with an item now. It does not change the item, and it does not panic, whatever
// the item contains. The item may be nil.
func Evaluate(di *lsv1alpha1.DeployItem, o Options) Decision {
	d := Decision{Revision: resolve(di, o.Revision)}
	if di == nil {
		d.Reason = reasonNoItem
		return d
	}
	v := look(di)
	switch {
	case v.ignored():
		d.Reason = reasonIgnored
		return d
	case v.deleting && !HasOurFinalizer(di):
		d.Reason = reasonNoFinalizer
		return d
	}
	d.Action = v.action()
	d.Remove = v.leftoverAbort()
	rulesOf(d.Revision).evaluate(v, &d)
	d.SkipUninstall = d.Action == ActionDelete && v.says(lsv1alpha1.DeleteWithoutUninstallAnnotation)
	if IsPaused(di) {
		v.pause(&d, o.Now)
	}
	d.Forceable = d.Forceable || d.Due
	d.Expired = expired(di, d, o.Now)
	return d
}

// Force returns the decision after a hook has forced the run: the run is due and not skipped as unchanged. A run that
// was not due before starts now, unless it is a background run. If d is not forceable, Force returns d unchanged.
func (d Decision) Force() Decision {
	if !d.Forceable {
		return d
	}
	if !d.Due {
		d.Due, d.New = true, !d.Background
	}
	d.Unchanged = false
	return d
}

// HasOurFinalizer reports whether an item carries Landscaper's finalizer. Without it, a deployer deletes nothing.
func HasOurFinalizer(di *lsv1alpha1.DeployItem) bool {
	return di != nil && slices.Contains(di.Finalizers, lsv1alpha1.LandscaperFinalizer)
}

// view is the part of an item that Evaluate reads.
type view struct {
	di *lsv1alpha1.DeployItem
	// op is the operation annotation. It is empty if an abort came after the run had ended.
	op       lsv1alpha1.Operation
	phase    phase
	deleting bool
	// changed reports that the generation differs from the one of the last start.
	changed bool
}

func look(di *lsv1alpha1.DeployItem) view {
	v := view{
		di:       di,
		op:       lsv1alpha1.Operation(di.Annotations[lsv1alpha1.OperationAnnotation]),
		phase:    di.Status.Phase,
		deleting: isDeleting(di),
		changed:  di.Generation != di.Status.ObservedGeneration,
	}
	if v.op == AbortOperation && IsFinal(v.phase) {
		v.op = ""
	}
	return v
}

func isDeleting(di *lsv1alpha1.DeployItem) bool { return !di.DeletionTimestamp.IsZero() }

func (v view) says(annotation string) bool { return v.di.Annotations[annotation] == "true" }

func (v view) has(annotation string) bool {
	_, ok := v.di.Annotations[annotation]
	return ok
}

func (v view) ignored() bool { return v.says(lsv1alpha1.IgnoreAnnotation) && IsFinal(v.phase) }

func (v view) managed() bool {
	_, ok := v.di.Labels[managedByLabel]
	return ok
}

// action picks one action, in the order of the list of actions.
func (v view) action() Action {
	switch {
	case v.op == AbortOperation:
		return ActionAbort
	case v.op == lsv1alpha1.ForceReconcileOperation:
		return ActionForceReconcile
	case v.deleting:
		return ActionDelete
	default:
		return ActionReconcile
	}
}

// leftoverAbort lists the annotations of an abort that came after its run had ended.
func (v view) leftoverAbort() []string {
	stored := lsv1alpha1.Operation(v.di.Annotations[lsv1alpha1.OperationAnnotation])
	if stored != AbortOperation || v.op == AbortOperation {
		return nil
	}
	keys := []string{lsv1alpha1.OperationAnnotation}
	if v.has(AbortTimestampAnnotation) {
		keys = append(keys, AbortTimestampAnnotation)
	}
	return keys
}

// expired reports whether a run in progress is past its deadline. Abort has its own deadline, and removing only the
// finalizer needs none.
func expired(di *lsv1alpha1.DeployItem, d Decision, now time.Time) bool {
	if !d.Due || d.New || d.Action == ActionAbort || d.SkipUninstall || now.IsZero() {
		return false
	}
	deadline, ok := Deadline(di, d)
	return ok && !now.Before(deadline)
}

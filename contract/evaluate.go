// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Action is the operation that one reconcile performs on an item. Each reconcile makes at most one deployer call.
type Action string

// These constants are the actions. If several of them apply, Evaluate chooses the first one in the order abort,
// force-reconcile, delete, reconcile.
const (
	ActionNone           Action = ""
	ActionAbort          Action = "abort"
	ActionForceReconcile Action = "force-reconcile"
	ActionDelete         Action = "delete"
	ActionReconcile      Action = "reconcile"
)

// Options configures Evaluate.
type Options struct {
	// Revision is the revision to follow. If it is empty, [DetectRevision] chooses the revision.
	Revision Revision
	// Now is the time of the reconcile. If it is zero, Evaluate does not check deadlines.
	Now time.Time
}

// Decision is the result of Evaluate: the action for an item, whether a run is due now, and the reason. It is pure
// data.
type Decision struct {
	// Revision is the revision of the contract that this reconcile follows.
	Revision Revision
	// Action is the action that a run performs. It is set even if no run is due, because a hook may force a run. It is
	// ActionNone only if no run is allowed: the item is nil, the item is ignored, the item is terminating without
	// Landscaper's finalizer, or the revision is unknown.
	Action Action
	// Due reports whether a run is due.
	Due bool
	// New reports whether the due run begins with this reconcile. If New is set, Due is set too, and the caller must call
	// Start and persist the result before the action.
	New bool
	// Background reports whether the run is a background run. If no run is due, Background refers to the run that a hook
	// may force. Only items that follow [RevisionJobID] have background runs, and only while their job is finished.
	Background bool
	// Forceable reports whether a ShouldReconcile hook may force a run. It is always set if Due is set; see
	// [Decision.Force].
	Forceable bool
	// Unchanged reports whether updateOnChangeOnly makes the due job unnecessary. In this case, the job ends without a
	// deployer call (see [FinishUnchanged]) unless a hook forces the run.
	Unchanged bool
	// SkipUninstall reports whether the deletion only removes the finalizer, without a call of the deployer.
	SkipUninstall bool
	// Expired reports whether the deadline has passed. In this case, the run ends as failed without a deployer call; see
	// [EndedByLibrary].
	Expired bool
	// NewJob reports whether the operation test-reconcile was requested for an item whose job is finished. In this case,
	// [StartRun] needs a new StartInfo.JobID.
	NewJob bool
	// Paused reports whether [PausedAnnotation] prevents every run, due or forced. It is false if an abort or a run in
	// progress continues despite the pause.
	Paused bool
	// BlockedByPause reports whether a run would be due if the item were not paused. If BlockedByPause is set, Paused is
	// set too. See [MarkPaused].
	BlockedByPause bool
	// RemoveAnnotations lists the keys of the annotations to remove. If New is set, remove the annotations after the start
	// has been persisted; otherwise, remove the annotations immediately. The operation annotation that requests a
	// force-reconcile or an abort is not in the list while this action is in progress; see [Outcome.Consumed].
	RemoveAnnotations []string
	// Reason is the reason why a run is due or not due.
	Reason Reason
}

// Reason is a CamelCase word that says why a run is due or not due, such as NewJob or Finished.
type Reason string

// These constants are the reasons. A comment that begins with "due" means that a run is due. A comment that begins with
// "job ID" belongs to a reason that occurs only under [RevisionJobID].
const (
	reasonNoItem           Reason = "NoItem"           // the item is nil
	reasonUnknownRevision  Reason = "UnknownRevision"  // the forced revision does not exist
	reasonIgnored          Reason = "Ignored"          // the ignore annotation is set and the phase is final
	reasonNoFinalizer      Reason = "NoFinalizer"      // the item is terminating and does not have Landscaper's finalizer
	reasonAwaitingJob      Reason = "AwaitingJob"      // an Execution manages the item and has not requested a run yet
	reasonDeleteFailed     Reason = "DeleteFailed"     // Delete failed and is not retried until there is a new operation, generation or job
	reasonPaused           Reason = "Paused"           // a run would be due, but the item is paused
	reasonFinished         Reason = "Finished"         // the run has ended and nothing new is requested
	reasonNeverRun         Reason = "NeverRun"         // job ID: no job has ever finished, so there are no background runs
	reasonDeletionPending  Reason = "DeletionPending"  // job ID: the item is terminating, but there is no job for the deletion yet
	reasonGenerationMoved  Reason = "GenerationMoved"  // job ID: the spec changed, but there is no job for the change yet
	reasonNotFinal         Reason = "NotFinal"         // job ID: the job is finished, but the phase is not final
	reasonOperation        Reason = "Operation"        // due: the operation annotation requests a run
	reasonGeneration       Reason = "Generation"       // due: the generation differs from observedGeneration
	reasonNotStarted       Reason = "NotStarted"       // due: no run has started yet
	reasonInProgress       Reason = "InProgress"       // due: a run in progress continues
	reasonDeletion         Reason = "Deletion"         // due: the item is terminating, and no Delete has run yet
	reasonNewJob           Reason = "NewJob"           // due: there is a job that has not started
	reasonUnchanged        Reason = "Unchanged"        // due: there is a new job, but updateOnChangeOnly is set and nothing changed
	reasonBackgroundOwed   Reason = "BackgroundOwed"   // due: a background run has to be retried
	reasonBackgroundForced Reason = "BackgroundForced" // due: force-reconcile was requested for a finished job
)

// allReasons lists all constants of type Reason.
var allReasons = []Reason{
	reasonNoItem, reasonUnknownRevision, reasonIgnored, reasonNoFinalizer, reasonAwaitingJob, reasonDeleteFailed, reasonPaused,
	reasonFinished, reasonNeverRun, reasonDeletionPending, reasonGenerationMoved, reasonNotFinal, reasonOperation, reasonGeneration,
	reasonNotStarted, reasonInProgress, reasonDeletion, reasonNewJob, reasonUnchanged, reasonBackgroundOwed, reasonBackgroundForced,
}

// AllReasons returns all reasons that a [Decision] can have.
func AllReasons() []Reason { return slices.Clone(allReasons) }

// Evaluate decides which action an item needs, and whether a run is due now. It does not change the item, and it does
// not panic, whatever the item contains. The item may be nil.
func Evaluate(di *lsv1alpha1.DeployItem, o Options) Decision {
	d := Decision{Revision: resolve(di, o.Revision)}
	if di == nil {
		d.Reason = reasonNoItem
		return d
	}
	v := newView(di)
	switch {
	case v.isIgnored():
		d.Reason = reasonIgnored
		return d
	case v.deleting && !HasLandscaperFinalizer(di):
		d.Reason = reasonNoFinalizer
		return d
	}
	d.Action = v.action()
	d.RemoveAnnotations = v.listStaleAbortKeys()
	getRules(d.Revision).evaluate(v, &d)
	d.SkipUninstall = d.Action == ActionDelete && v.isTrue(lsv1alpha1.DeleteWithoutUninstallAnnotation)
	if IsPaused(di) {
		v.applyPause(&d, o.Now)
	}
	d.Forceable = d.Forceable || d.Due
	d.Expired = isExpired(di, d, o.Now)
	return d
}

// Force returns the decision that results if a hook forces the run. Due is set, and Unchanged is cleared. If the run
// was not due before and is not a background run, New is set too. If d is not forceable, Force returns d unchanged.
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

// HasLandscaperFinalizer reports whether an item carries Landscaper's finalizer. [Evaluate] allows no run for a
// terminating item without this finalizer.
func HasLandscaperFinalizer(di *lsv1alpha1.DeployItem) bool {
	return di != nil && slices.Contains(di.Finalizers, lsv1alpha1.LandscaperFinalizer)
}

// view is the part of an item that Evaluate reads.
type view struct {
	di *lsv1alpha1.DeployItem
	// op is the value of the operation annotation. It is empty if the annotation requests an abort but the run has
	// already ended.
	op       lsv1alpha1.Operation
	phase    phase
	deleting bool
	// changed reports whether the generation differs from observedGeneration, which is the generation at the last start.
	changed bool
}

func newView(di *lsv1alpha1.DeployItem) view {
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

func (v view) isTrue(annotation string) bool { return v.di.Annotations[annotation] == "true" }

func (v view) has(annotation string) bool {
	_, ok := v.di.Annotations[annotation]
	return ok
}

func (v view) isIgnored() bool { return v.isTrue(lsv1alpha1.IgnoreAnnotation) && IsFinal(v.phase) }

func (v view) isManaged() bool {
	_, ok := v.di.Labels[managedByLabel]
	return ok
}

// action returns the first action that applies. The order is documented at the constants of type Action.
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

// listStaleAbortKeys returns the keys of the annotations that requested an abort if these annotations are still set
// although the run has ended.
func (v view) listStaleAbortKeys() []string {
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

// isExpired reports whether a run in progress is past its deadline. Abort has its own deadline, and a deletion that
// only removes the finalizer has no deadline.
func isExpired(di *lsv1alpha1.DeployItem, d Decision, now time.Time) bool {
	if !d.Due || d.New || d.Action == ActionAbort || d.SkipUninstall || now.IsZero() {
		return false
	}
	deadline, ok := RunDeadline(di, d)
	return ok && !now.Before(deadline)
}

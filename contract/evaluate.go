// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Action is what one reconcile does with an item: at most one deployer call.
type Action string

// The actions. When several apply the first of this list wins: abort, force-reconcile, delete, reconcile.
const (
	ActionNone           Action = ""
	ActionAbort          Action = "abort"
	ActionForceReconcile Action = "force-reconcile"
	ActionDelete         Action = "delete"
	ActionReconcile      Action = "reconcile"
)

// Options say how Evaluate looks at an item.
type Options struct {
	// Revision forces a revision; empty: [Detect].
	Revision Revision
	// Now is the time of the pass; the zero time expires nothing.
	Now time.Time
}

// Decision is what the default logic wants of an item. Pure data.
type Decision struct {
	// Revision is the contract that this pass follows.
	Revision Revision
	// Action is what a run, due or forced, would do. ActionNone only when nothing may run at all: the item is ignored,
	// terminating without our finalizer, or nil.
	Action Action
	// Due: the default logic wants a run.
	Due bool
	// New: the due run begins with this pass; Start must be applied and persisted before the action. Implies Due.
	New bool
	// Background: the run is (or, when it is not due, a forced one would be) a background run on a finished job-ID item.
	Background bool
	// Forceable: a ShouldReconcile hook may force a run. Always true when Due; see [Decision.Force].
	Forceable bool
	// Unchanged: updateOnChangeOnly says that there is nothing to do. Due, but unless a hook forces the run the job
	// ends without a call: [FinishUnchanged].
	Unchanged bool
	// SkipUninstall: Delete without calling the deployer; only the finalizer goes.
	SkipUninstall bool
	// Expired: the deadline passed; end the run as failed without calling the deployer: [TimedOut].
	Expired bool
	// NewJob: test-reconcile on a finished job; Start needs a fresh StartInfo.JobID.
	NewJob bool
	// Paused: [PausedAnnotation] holds back whatever is wanted; neither due nor forceable. Not set when an abort or a run
	// in progress goes on all the same.
	Paused bool
	// Held: something would be due if the item were not paused. Implies Paused; see [MarkPaused].
	Held bool
	// Remove lists annotation keys to remove: after the start was persisted when New, right away otherwise.
	// force-reconcile and an abort that still has work to do are not in it: [Outcome.Consumed].
	Remove []string
	// Reason says why the item is due, or is not.
	Reason Reason
}

// Reason says why an item is due, or is not. It is one word in CamelCase, such as NewJob or Finished.
type Reason string

// The reasons. The comments of those that lead to a run begin with "due".
const (
	reasonNoItem           Reason = "NoItem"           // nil
	reasonUnknownRevision  Reason = "UnknownRevision"  // the forced revision does not exist
	reasonIgnored          Reason = "Ignored"          // annotation ignore on a final phase
	reasonNoFinalizer      Reason = "NoFinalizer"      // terminating without our finalizer
	reasonAwaitingJob      Reason = "AwaitingJob"      // managed by an Execution and never asked for
	reasonDeleteFailed     Reason = "DeleteFailed"     // Delete failed; rests until a new operation, generation or job
	reasonPaused           Reason = "Paused"           // something would be due, but the item is paused
	reasonFinished         Reason = "Finished"         // final and nothing new
	reasonNeverRun         Reason = "NeverRun"         // job ID: no job was ever finished, background runs are refused
	reasonDeletionPending  Reason = "DeletionPending"  // job ID: terminating, the job that deletes is still to come
	reasonGenerationMoved  Reason = "GenerationMoved"  // job ID: the spec changed, its job is still to come
	reasonNotFinal         Reason = "NotFinal"         // job ID: finished job with a phase that is not final
	reasonOperation        Reason = "Operation"        // due: the operation annotation
	reasonGeneration       Reason = "Generation"       // due: generation differs from observedGeneration
	reasonNotStarted       Reason = "NotStarted"       // due: never started
	reasonInProgress       Reason = "InProgress"       // due: a started run goes on
	reasonDeletion         Reason = "Deletion"         // due: terminating and no Delete ran yet
	reasonNewJob           Reason = "NewJob"           // due: a job that was not started
	reasonUnchanged        Reason = "Unchanged"        // due: a new job, but updateOnChangeOnly and nothing changed
	reasonBackgroundOwed   Reason = "BackgroundOwed"   // due: a background run has to be tried again
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

// Evaluate tells what is wanted of an item now. It never changes the item and never panics, whatever the item holds.
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

// Force is the decision after a hook forced the run: due, with a start of its own unless it runs in the background, and
// never skipped as unchanged. Not forceable: d as it is.
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

// HasOurFinalizer reports whether an item carries Landscaper's finalizer, without which a deployer deletes nothing.
func HasOurFinalizer(di *lsv1alpha1.DeployItem) bool {
	return di != nil && slices.Contains(di.Finalizers, lsv1alpha1.LandscaperFinalizer)
}

// view is an item as Evaluate reads it.
type view struct {
	di *lsv1alpha1.DeployItem
	// op is the operation annotation; empty also for an abort that found the run ended already.
	op       lsv1alpha1.Operation
	phase    phase
	deleting bool
	// changed: the generation is not the one that was last started on.
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

// action picks exactly one action, in the order of the list of actions.
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

// leftoverAbort lists the annotations of an abort that came too late: its run had ended.
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

// expired reports whether a run that goes on has outlived its deadline. Abort has a deadline of its own, and removing
// only the finalizer needs none.
func expired(di *lsv1alpha1.DeployItem, d Decision, now time.Time) bool {
	if !d.Due || d.New || d.Action == ActionAbort || d.SkipUninstall || now.IsZero() {
		return false
	}
	deadline, ok := Deadline(di, d)
	return ok && !now.Before(deadline)
}

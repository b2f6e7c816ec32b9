// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Revision is the name of a revision of the contract between Landscaper and its deployers.
type Revision string

const (
	// RevisionAnnotation is the contract of Landscaper up to v0.27. It uses the operation and reconcile-time
	// annotations and the generation.
	RevisionAnnotation Revision = "annotation"
	// RevisionJobID is the contract since v0.28. It compares status.jobID with status.jobIDFinished.
	RevisionJobID Revision = "job-id"
)

// AllRevisions returns all revisions, newest first.
func AllRevisions() []Revision {
	var all []Revision
	for _, r := range allRules {
		all = append(all, r.revision())
	}
	return all
}

// DetectRevision returns the revision that an item follows. An item with a job ID follows [RevisionJobID]. An item
// without a job ID follows [RevisionAnnotation] while a run is in progress, so that the run can end even if Landscaper
// is upgraded in the meantime. Any other item follows [RevisionJobID] if it carries the deployer-type annotation, and
// [RevisionAnnotation] otherwise. A nil item follows [RevisionAnnotation].
func DetectRevision(di *lsv1alpha1.DeployItem) Revision {
	for _, r := range allRules {
		if r.isSelectedBy(di) {
			return r.revision()
		}
	}
	return ""
}

// resolve returns the forced revision if it is not empty and the item can follow it. Otherwise, resolve returns the
// detected revision.
func resolve(di *lsv1alpha1.DeployItem, forced Revision) Revision {
	if forced != "" && getRules(forced).supports(di) {
		return forced
	}
	return DetectRevision(di)
}

// rules is the part of the contract that differs between the revisions. Each revision implements this interface in a
// separate file. No other code of this package distinguishes between the revisions.
type rules interface {
	revision() Revision
	// isSelectedBy reports whether the item itself selects the revision. accepts reports whether the item can be forced to
	// follow the revision.
	isSelectedBy(di *lsv1alpha1.DeployItem) bool
	supports(di *lsv1alpha1.DeployItem) bool

	// evaluate decides whether a run for the action in d is due, and why. It writes the result to d.
	evaluate(v view, d *Decision)
	// isInProgress reports whether the run that d requests is already in progress.
	isInProgress(v view, d Decision) bool
	// isSameRun implements [IsSameRun] for items with the same UID.
	isSameRun(stored, mine *lsv1alpha1.DeployItemStatus, d Decision) bool

	// listPhases returns the names of the phases in which the revisions differ.
	listPhases() revisionPhases
	// requestTime returns the time at which the current run was requested, or nil. The recorded start of a run is never
	// earlier than the request.
	requestTime(di *lsv1alpha1.DeployItem) *metav1.Time
	// runStart returns the time at which the current run began, or nil if it is not recorded.
	runStart(di *lsv1alpha1.DeployItem) *metav1.Time

	// start, finish and recordHistory write the fields that only this revision uses: at the start of a run, at its end,
	// and after lastError was set.
	start(status *lsv1alpha1.DeployItemStatus, d Decision, s StartInfo)
	setFinished(status *lsv1alpha1.DeployItemStatus, now time.Time)
	recordHistory(status *lsv1alpha1.DeployItemStatus)
	// mask implements [RevertForbiddenChanges] for the fields that a deployer may write under some revisions only.
	mask(before, after *lsv1alpha1.DeployItemStatus)

	// setHookError writes the error of a hook that failed while no run was due, and removeHookError removes the error.
	setHookError(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error, now time.Time)
	removeHookError(status *lsv1alpha1.DeployItemStatus)
	// hasHookError reports whether the status shows an error that setHookError wrote. isHookErrorRecorded reports whether
	// the status shows the given error of a hook.
	hasHookError(status *lsv1alpha1.DeployItemStatus) bool
	isHookErrorRecorded(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool
}

// revisionPhases contains the phases in which the revisions differ.
type revisionPhases struct {
	// initDelete is the phase of a deletion that begins. deleteFailed is the phase of a deletion that failed.
	initDelete, deleteFailed phase
	// writable lists the phases that a deployer may store.
	writable []phase
}

// allRules lists all revisions, newest first. Every item can follow the oldest revision, so [DetectRevision] always
// finds a revision in this list.
var allRules = []rules{jobIDRules{}, annotationRules{}}

// getRules returns the rules of a revision. The rules of an unknown revision start no run and allow no write.
func getRules(name Revision) rules {
	i := slices.IndexFunc(allRules, func(r rules) bool { return r.revision() == name })
	if i < 0 {
		return unknownRules(name)
	}
	return allRules[i]
}

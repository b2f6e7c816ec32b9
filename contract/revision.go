// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Revision names a revision of the contract between Landscaper and its deployers.
type Revision string

const (
	// RevisionAnnotation is the contract of Landscaper up to v0.27: operation and reconcile-time annotations, generation.
	RevisionAnnotation Revision = "annotation"
	// RevisionJobID is the contract since v0.28: status.jobID against status.jobIDFinished.
	RevisionJobID Revision = "job-id"
)

// Revisions returns all revisions, newest first.
func Revisions() []Revision {
	var all []Revision
	for _, r := range revisions {
		all = append(all, r.revision())
	}
	return all
}

// Detect returns the revision that an item follows, which is the newest one that claims it. An item with a job ID
// follows [RevisionJobID]. Without a job ID, a run in progress stays under [RevisionAnnotation], so that an upgrade of
// Landscaper cannot strand it; otherwise the deployer-type annotation selects [RevisionJobID]. All other items,
// including nil, follow [RevisionAnnotation].
func Detect(di *lsv1alpha1.DeployItem) Revision {
	for _, r := range revisions {
		if r.claims(di) {
			return r.revision()
		}
	}
	return ""
}

// resolve returns the forced revision if there is one and it accepts the item, and the detected one otherwise.
func resolve(di *lsv1alpha1.DeployItem, forced Revision) Revision {
	if forced != "" && rulesOf(forced).accepts(di) {
		return forced
	}
	return Detect(di)
}

// rules holds what differs between the revisions. Each revision implements it in one file, and nothing else in this
// package knows which revisions exist.
type rules interface {
	revision() Revision
	// claims reports whether the item itself selects the revision. accepts reports whether the item can be forced to
	// follow it.
	claims(di *lsv1alpha1.DeployItem) bool
	accepts(di *lsv1alpha1.DeployItem) bool

	// evaluate decides whether a run is due and why. The action has already been decided.
	evaluate(v view, d *Decision)
	// continues reports whether a run in progress already does what d requests.
	continues(v view, d Decision) bool
	// sameRun is [SameRun] for items with the same UID.
	sameRun(stored, mine *lsv1alpha1.DeployItemStatus, d Decision) bool

	// phases returns the names of the phases in which the revisions differ.
	phases() phaseNames
	// requested returns the time at which the current run was requested. A run never starts before it.
	requested(di *lsv1alpha1.DeployItem) *metav1.Time
	// runStart returns the time at which the current run began, or nil if it is not recorded.
	runStart(di *lsv1alpha1.DeployItem) *metav1.Time

	// start, finish and recordHistory write the fields that only this revision has: at the start of a run, at its end,
	// and after lastError was set.
	start(status *lsv1alpha1.DeployItemStatus, d Decision, s StartInfo)
	finish(status *lsv1alpha1.DeployItemStatus, now time.Time)
	recordHistory(status *lsv1alpha1.DeployItemStatus)
	// mask is the part of [Mask] for fields that only some revisions write.
	mask(before, after *lsv1alpha1.DeployItemStatus)

	// hookFailed writes the error of a hook that failed while no run was due, hookRecovered removes it.
	hookFailed(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error, now time.Time)
	hookRecovered(status *lsv1alpha1.DeployItemStatus)
	// showsHookFailure reports whether the status shows such an error, and showsHookError whether it shows e.
	showsHookFailure(status *lsv1alpha1.DeployItemStatus) bool
	showsHookError(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool
}

// phaseNames holds the phases in which the revisions differ.
type phaseNames struct {
	// initDelete is the phase of a deletion that begins. deleteFailed is the phase of one that failed.
	initDelete, deleteFailed phase
	// writable lists the phases that a deployer may store.
	writable []phase
}

// revisions lists all revisions, newest first. The last one claims every item.
var revisions = []rules{jobID{}, annotation{}}

// rulesOf returns the rules of a revision. The rules of an unknown revision start no run and allow no write, so that it
// is never treated as another revision.
func rulesOf(name Revision) rules {
	i := slices.IndexFunc(revisions, func(r rules) bool { return r.revision() == name })
	if i < 0 {
		return unknown(name)
	}
	return revisions[i]
}

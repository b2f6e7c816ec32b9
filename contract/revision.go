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

// Detect returns the revision that an item follows: the newest one that claims it. A job ID decides for [RevisionJobID]. Without
// one, a run in progress stays under [RevisionAnnotation], so that an upgraded Landscaper cannot strand it; else the
// deployer-type annotation decides for [RevisionJobID]. Everything else, nil included, is [RevisionAnnotation].
func Detect(di *lsv1alpha1.DeployItem) Revision {
	for _, r := range revisions {
		if r.claims(di) {
			return r.revision()
		}
	}
	return ""
}

// resolve returns the forced revision if it accepts the item, and the detected one if nothing is forced or it does not.
func resolve(di *lsv1alpha1.DeployItem, forced Revision) Revision {
	if forced != "" && rulesOf(forced).accepts(di) {
		return forced
	}
	return Detect(di)
}

// rules are what differs between the revisions. Each revision implements them in one file, and nothing else in this
// package knows which revisions there are.
type rules interface {
	revision() Revision
	// claims reports whether the item follows the revision by itself. accepts reports whether it can be made to.
	claims(di *lsv1alpha1.DeployItem) bool
	accepts(di *lsv1alpha1.DeployItem) bool

	// evaluate decides whether a run is due, and why. The action is decided already.
	evaluate(v view, d *Decision)
	// continues reports whether a run that began earlier does what d asks for.
	continues(v view, d Decision) bool
	// sameRun is [SameRun] for items with the same UID.
	sameRun(stored, mine *lsv1alpha1.DeployItemStatus, d Decision) bool

	// phases returns the names of the phases in which the revisions differ.
	phases() phaseNames
	// requested returns the time at which the current run was asked for. A run never starts before it.
	requested(di *lsv1alpha1.DeployItem) *metav1.Time
	// runStart returns when the current run began, nil if nothing says so.
	runStart(di *lsv1alpha1.DeployItem) *metav1.Time

	// start, finish and recordHistory write the fields that only this revision has: when a run starts, when it ends, and
	// when lastError was set.
	start(status *lsv1alpha1.DeployItemStatus, d Decision, s StartInfo)
	finish(status *lsv1alpha1.DeployItemStatus, now time.Time)
	recordHistory(status *lsv1alpha1.DeployItemStatus)
	// mask is [Mask] for the fields that only some revisions write.
	mask(before, after *lsv1alpha1.DeployItemStatus)

	// hookFailed writes the error of a hook that failed while no run was due, hookRecovered removes it.
	hookFailed(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error, now time.Time)
	hookRecovered(status *lsv1alpha1.DeployItemStatus)
	// showsHookFailure reports whether the status shows such an error, and showsHookError whether it shows e.
	showsHookFailure(status *lsv1alpha1.DeployItemStatus) bool
	showsHookError(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool
}

// phaseNames are the phases in which the revisions differ.
type phaseNames struct {
	// initDelete is the phase of a deletion that begins, deleteFailed that of one that failed.
	initDelete, deleteFailed phase
	// writable are all phases that a deployer may store.
	writable []phase
}

// revisions are all revisions, newest first. The last one claims every item.
var revisions = []rules{jobID{}, annotation{}}

// rulesOf returns the rules of a revision. An unknown one gets rules that start no run and let no write through, so
// that it is never treated as another revision.
func rulesOf(name Revision) rules {
	i := slices.IndexFunc(revisions, func(r rules) bool { return r.revision() == name })
	if i < 0 {
		return unknown(name)
	}
	return revisions[i]
}

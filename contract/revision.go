// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Revision names one of the two contracts that Landscapers have spoken.
type Revision string

const (
	// Annotation is the contract of Landscaper up to v0.27: operation and reconcile-time annotations, generation.
	Annotation Revision = "annotation"
	// JobID is the contract since v0.28: status.jobID against status.jobIDFinished.
	JobID Revision = "job-id"
)

// Detect tells which revision an item follows. A job ID decides for [JobID]. Without one, a run in progress stays
// under [Annotation], so that an upgraded Landscaper cannot strand it; else the deployer-type annotation decides for
// [JobID]. Everything else, nil included, is [Annotation].
func Detect(di *lsv1alpha1.DeployItem) Revision {
	switch {
	case di == nil:
		return Annotation
	case di.Status.JobID != "":
		return JobID
	case isWorking(di.Status.Phase):
		return Annotation
	}
	if _, ok := di.Annotations[lsv1alpha1.DeployerTypeAnnotation]; ok {
		return JobID
	}
	return Annotation
}

// resolve is Detect unless the caller forces a revision. A run in progress without a job ID ends under Annotation even
// then: under JobID it would count as finished and hang.
func resolve(di *lsv1alpha1.DeployItem, forced Revision) Revision {
	switch {
	case forced == Annotation:
		return Annotation
	case forced == JobID && (di == nil || di.Status.JobID != "" || !isWorking(di.Status.Phase)):
		return JobID
	}
	return Detect(di)
}

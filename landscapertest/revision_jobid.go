// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
)

// jobProtocol implements [contract.RevisionJobID].
type jobProtocol struct{}

func (jobProtocol) hasJobs() bool { return true }

func (jobProtocol) prepareCreate(di *lsv1alpha1.DeployItem) {
	di.Finalizers = append(di.Finalizers, lsv1alpha1.LandscaperFinalizer)
}

func (jobProtocol) prepareUpdate(*lsv1alpha1.DeployItem, string) {}

func (jobProtocol) isFinished(di *lsv1alpha1.DeployItem) (bool, error) {
	s := di.Status
	if s.JobID == "" || s.JobID != s.JobIDFinished {
		return false, nil
	}
	if !contract.IsFinal(s.Phase) {
		return false, fmt.Errorf("deploy item %s: job %q is marked as finished, but the phase is %q", keyOf(di), s.JobID, s.Phase)
	}
	return true, nil
}

func (jobProtocol) runSince(di *lsv1alpha1.DeployItem) *metav1.Time {
	return di.Status.JobIDGenerationTime
}

func (jobProtocol) addFailure(status map[string]any, di *lsv1alpha1.DeployItem, e map[string]any, now string) {
	status["jobIDFinished"] = di.Status.JobID
	status["lastErrors"] = appendLastError(di.Status.LastErrors, e)
	if di.Status.FirstError == nil {
		status["firstError"] = e
	}
	status["transitionTimes"] = map[string]any{"finishedTime": now}
}

func (jobProtocol) pendingSince(di *lsv1alpha1.DeployItem) (time.Time, bool) {
	s := di.Status
	if s.JobID == s.JobIDFinished || s.JobIDGenerationTime == nil {
		return time.Time{}, false
	}
	pickedUp := s.LastReconcileTime != nil && !s.LastReconcileTime.Before(s.JobIDGenerationTime)
	return s.JobIDGenerationTime.Time, !pickedUp
}

// applyTimeouts does nothing, because the deployer itself enforces the deadline of a job.
func (jobProtocol) applyTimeouts(context.Context, *Landscaper, *lsv1alpha1.DeployItem) error {
	return nil
}

// maxLastErrors is the maximum length of status.lastErrors.
const maxLastErrors = 5

// appendLastError appends e to the history and drops the oldest errors if there are too many.
func appendLastError(history []*lsv1alpha1.Error, e map[string]any) []any {
	var out []any
	for _, old := range history[max(0, len(history)+1-maxLastErrors):] {
		out = append(out, old)
	}
	return append(out, e)
}

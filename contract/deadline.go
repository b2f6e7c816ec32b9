// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Timeout returns how long a run of the item may take: spec.timeout, or [DefaultTimeout] if it is not set. The second
// result is false if the timeout is "none" or 0; the run then has no deadline. A negative timeout is an error with the
// code ERR_CONFIGURATION_PROBLEM.
func Timeout(di *lsv1alpha1.DeployItem) (time.Duration, bool, error) {
	switch {
	case di == nil || di.Spec.Timeout == nil:
		return DefaultTimeout, true, nil
	case di.Spec.Timeout.Duration < 0:
		return 0, false, &CodedError{
			Operation: "Timeout", Reason: "InvalidTimeout", Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem},
			Message: fmt.Sprintf("spec.timeout: must not be negative, is %s", di.Spec.Timeout.Duration),
		}
	case di.Spec.Timeout.Duration == 0:
		return 0, false, nil
	default:
		return di.Spec.Timeout.Duration, true, nil
	}
}

// RunDeadline returns the time by which the item's run must end. The second result is false if the run has no deadline.
// This is the case if there is no timeout, the timeout is invalid, or the start of the run is not recorded. Retries,
// waiting and restarts do not move the deadline. The field that contains the start of the run depends on the kind of
// run:
//   - a job under [RevisionJobID]: transitionTimes.initTime, or lastReconcileTime if initTime is not set;
//   - a run under [RevisionAnnotation]: lastReconcileTime;
//   - a background run: lastTransitionTime of [ConditionBackground] while that condition is True. The first attempt of
//     a background run has no deadline yet, so the caller limits this attempt to now + [Timeout].
func RunDeadline(di *lsv1alpha1.DeployItem, d Decision) (time.Time, bool) {
	timeout, limited, err := Timeout(di)
	if di == nil || err != nil || !limited {
		return time.Time{}, false
	}
	begin := runStart(di, d)
	if begin.IsZero() {
		return time.Time{}, false
	}
	return begin.Add(timeout), true
}

func runStart(di *lsv1alpha1.DeployItem, d Decision) *metav1.Time {
	if !d.Background {
		return getRules(d.Revision).runStart(di)
	}
	if c := GetCondition(di.Status.Conditions, ConditionBackground); c != nil && c.Status == lsv1alpha1.ConditionTrue {
		return &c.LastTransitionTime
	}
	return nil
}

// AbortDeadline returns the time by which Abort must end. The argument firstSeen is the time at which the deployer
// first saw the abort. The deadline is [AbortTimeout] after firstSeen, or [AbortTimeout] after the time in
// [AbortTimestampAnnotation] if that is earlier. AbortDeadline ignores the annotation if its value cannot be parsed or
// is older than the run.
func AbortDeadline(di *lsv1alpha1.DeployItem, firstSeen time.Time) time.Time {
	deadline := firstSeen.Add(AbortTimeout)
	if di == nil {
		return deadline
	}
	asked, err := time.Parse(time.RFC3339, di.Annotations[AbortTimestampAnnotation])
	if err != nil {
		return deadline
	}
	at := metav1.NewTime(asked)
	if by := asked.Add(AbortTimeout); by.Before(deadline) && notBefore(&at, di.Status.LastReconcileTime) {
		return by
	}
	return deadline
}

// NewTimeoutError returns the lastError of a run that did not end in time, with the code ERR_TIMEOUT and the reason
// ProgressingTimeout. If cause, the last error of the run, is not nil, the message of the result includes its text.
func NewTimeoutError(cause *lsv1alpha1.Error, timeout time.Duration, now time.Time) *lsv1alpha1.Error {
	return newTimeoutError(progressingTimeoutOperation, lsv1alpha1.ProgressingTimeoutReason,
		fmt.Sprintf("not finished within %s", timeout), cause, now)
}

// NewAbortTimeoutError returns the lastError of an Abort that did not end in time, with the code ERR_TIMEOUT and the
// reason AbortingTimeout. It treats cause like [NewTimeoutError].
func NewAbortTimeoutError(cause *lsv1alpha1.Error, now time.Time) *lsv1alpha1.Error {
	return newTimeoutError(AbortingTimeoutOperation, AbortingTimeoutReason, "not aborted in time", cause, now)
}

func newTimeoutError(operation, reason, message string, cause *lsv1alpha1.Error, now time.Time) *lsv1alpha1.Error {
	return newError(operation, reason, withCause(message, cause), now, lsv1alpha1.ErrorTimeout)
}

// withCause appends the text of cause, the last known error of the unfinished run, to the message.
func withCause(message string, cause *lsv1alpha1.Error) string {
	if cause == nil || cause.Message == "" {
		return message
	}
	return message + "; last error: " + cause.Message
}

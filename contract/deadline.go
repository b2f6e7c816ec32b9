// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Timeout is how long a run of the item may take: spec.timeout, else [DefaultTimeout]. False: "none" or 0, the run has
// no deadline. A negative timeout is an error with ERR_CONFIGURATION_PROBLEM.
func Timeout(di *lsv1alpha1.DeployItem) (time.Duration, bool, error) {
	switch {
	case di == nil || di.Spec.Timeout == nil:
		return DefaultTimeout, true, nil
	case di.Spec.Timeout.Duration < 0:
		return 0, false, &Fault{
			Operation: "Timeout", Reason: "InvalidTimeout", Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem},
			Message: fmt.Sprintf("spec.timeout: must not be negative, is %s", di.Spec.Timeout.Duration),
		}
	case di.Spec.Timeout.Duration == 0:
		return 0, false, nil
	default:
		return di.Spec.Timeout.Duration, true, nil
	}
}

// Deadline is when the item's run has to end; false when it has no deadline (no timeout, an invalid one, or nothing
// says when the run began). Retries, waiting and restarts do not move it. The run began at
//   - job ID: transitionTimes.initTime, else lastReconcileTime;
//   - annotation: lastReconcileTime;
//   - background: lastTransitionTime of [ConditionBackground] while that is True. The first attempt has no deadline
//     yet: the caller bounds it by now + [Timeout].
func Deadline(di *lsv1alpha1.DeployItem, d Decision) (time.Time, bool) {
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
		return rulesOf(d.Revision).runStart(di)
	}
	if c := GetCondition(di.Status.Conditions, ConditionBackground); c != nil && c.Status == lsv1alpha1.ConditionTrue {
		return &c.LastTransitionTime
	}
	return nil
}

// AbortDeadline is when Abort has to end: [AbortTimeout] after it was first seen or after the abort-time annotation,
// whichever is earlier. An abort-time that cannot be read, or that is older than the run, does not count.
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

// TimeoutError is lastError of a run that did not end in time: ERR_TIMEOUT, reason ProgressingTimeout. cause is the
// error that the run ended with so far, nil when there was none; its text is kept in the message.
func TimeoutError(cause *lsv1alpha1.Error, timeout time.Duration, now time.Time) *lsv1alpha1.Error {
	return timeoutError(progressingTimeoutOperation, lsv1alpha1.ProgressingTimeoutReason,
		fmt.Sprintf("not finished within %s", timeout), cause, now)
}

// AbortTimeoutError is lastError of an Abort that did not end in time: ERR_TIMEOUT, reason AbortingTimeout. cause as in
// [TimeoutError].
func AbortTimeoutError(cause *lsv1alpha1.Error, now time.Time) *lsv1alpha1.Error {
	return timeoutError(AbortingTimeoutOperation, AbortingTimeoutReason, "not aborted in time", cause, now)
}

func timeoutError(operation, reason, message string, cause *lsv1alpha1.Error, now time.Time) *lsv1alpha1.Error {
	return newError(operation, reason, withCause(message, cause), now, lsv1alpha1.ErrorTimeout)
}

// withCause appends why a run had not come to an end, as far as that is known.
func withCause(message string, cause *lsv1alpha1.Error) string {
	if cause == nil || cause.Message == "" {
		return message
	}
	return message + "; last error: " + cause.Message
}

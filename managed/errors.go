// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// maxText is the maximum length of a text that another program wrote.
const maxText = 1024

func oneLine(text string) string { return contract.OneLine(text, maxText) }

// ConvertApplyError adds an error code to an error of the apply engine if the item's Landscaper job must fail. This is
// the case if only a different configuration can resolve the error, or if the target rejects the credentials for the
// second time in a run. After the first rejection, the credentials are read again, because they may have been replaced
// a moment ago. ConvertApplyError returns other errors, and nil, unchanged. RecordResult calls ConvertApplyError
// itself.
func (r *Run) ConvertApplyError(err error) error {
	if IsUnauthorized(err) {
		if !r.item.recordUnauthorized() {
			return err
		}
		return lserrors.NewError("ApplyObjects", "Unauthorized", oneLine(err.Error()), lsv1alpha1.ErrorUnauthorized)
	}
	if apply.GetClass(err) == apply.ClassPermanent {
		return lserrors.NewError("ApplyObjects", "ApplyFailed", oneLine(err.Error()), lsv1alpha1.ErrorConfigurationProblem)
	}
	return err
}

// IsTransient reports whether an error probably passes although neither the configuration nor the rights change. This
// is the case if the target did not respond in time, was overloaded or lags behind, or if another client changed the
// object at the same time. An error of several objects is transient if the error of any of them is.
func IsTransient(err error) bool {
	passes := func(e *apply.Error) bool { return isTransientReason(e.StatusReason) }
	if isTransientReason(apierrors.ReasonForError(err)) || slices.ContainsFunc(extractApplyErrors(err), passes) {
		return true
	}
	_, unreachable := errors.AsType[*targets.UnreachableError](err)
	_, network := errors.AsType[net.Error](err)
	return unreachable || network || errors.Is(err, errLags)
}

// isTransientReason reports whether a request that failed for this reason can succeed if it is repeated.
func isTransientReason(reason metav1.StatusReason) bool {
	switch reason { //nolint:exhaustive // all other reasons can last
	case metav1.StatusReasonConflict, metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout,
		metav1.StatusReasonTooManyRequests, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonInternalError:
		return true
	}
	return false
}

// IsUnauthorized reports whether the target rejected the credentials in a request for one of the objects. It recognizes
// only errors of the apply engine and of Cluster.Read. Errors of other clients may come from another cluster.
func IsUnauthorized(err error) bool {
	refused := func(e *apply.Error) bool { return e.StatusReason == metav1.StatusReasonUnauthorized }
	return slices.ContainsFunc(extractApplyErrors(err), refused)
}

// extractApplyErrors returns the errors of the apply engine in err, one for each object.
func extractApplyErrors(err error) apply.Errors {
	if all, ok := errors.AsType[apply.Errors](err); ok {
		return all
	}
	if one, ok := errors.AsType[*apply.Error](err); ok {
		return apply.Errors{one}
	}
	return nil
}

// newConnectError converts an error that occurred while a target was opened. If the Target itself is invalid, it adds
// an error code. The field at path names the Target.
func newConnectError(path string, err error) error {
	if err == nil {
		return nil
	}
	if fault, ok := errors.AsType[*targets.ConfigError](err); ok {
		return deployerlib.NewConfigError(path, "%s", fault.Error())
	}
	if fault, ok := errors.AsType[*targets.ResolveError](err); ok && fault.IsConfigError() {
		return deployerlib.NewConfigError(path, "%s", fault.Error())
	}
	return fmt.Errorf("%s: %w", path, err)
}

// newTimeoutError returns the error for a step that has waited longer than allowed, with the reason why it was waiting.
func newTimeoutError(step string, bound time.Duration, reason string) error {
	return lserrors.NewError("Wait", lsv1alpha1.ProgressingTimeoutReason, oneLine(fmt.Sprintf("%s: not done within %s: %s", step, bound, reason)),
		lsv1alpha1.ErrorTimeout)
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// newRequestError converts the error of a request for an object into an Error.
func newRequestError(ref Ref, err error, hide *redact.Redactor) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if problem, ok := errors.AsType[*decide.Problem](err); ok {
		return toError(ref, problem)
	}
	out := &Error{Ref: ref, Class: ClassRetry}
	status := apierrors.APIStatus(nil)
	switch {
	case isUnsupported(ref, err):
		out.Class, out.Message = ClassPermanent, "the API server cannot apply this kind: its objects cannot be read"
		return out
	case absence.ClassifyError(absence.Object{Kind: ref.GVK().GroupKind(), Name: ref.Name}, err) == absence.MeaningNotServed:
		out.Class, out.Message, out.unserved = ClassWait, cleanText(hide, DescribeUnserved(ref.GVK(), err)), true
		return out
	case isKindError(err):
		out.Message = cleanText(hide, err.Error())
		return out
	case !errors.As(err, &status):
		out.Message, out.cause = cleanText(hide, err.Error()), err
		return out
	}
	out.setStatus(status.Status(), err, hide)
	return out
}

// toError returns the Error for a problem that was found without an error of the API server.
func toError(ref Ref, problem *decide.Problem) *Error {
	out := &Error{Ref: ref, Path: problem.Path, Message: problem.Reason}
	switch problem.Kind {
	case decide.ProblemWaiting:
		out.Class = ClassWait
	case decide.ProblemConflict:
		out.Class, out.StatusReason = ClassRetry, metav1.StatusReasonConflict
	case decide.ProblemOwned:
		out.Class, out.StatusReason = ClassPermanent, metav1.StatusReasonConflict
	case decide.ProblemInvalid:
		out.Class = ClassPermanent
	}
	return out
}

func isKindError(err error) bool {
	_, ok := errors.AsType[*absence.KindError](err)
	return ok
}

// isUnsupported reports whether the cluster serves the kind of an object, but no objects of the kind exist, so that
// they cannot be applied.
func isUnsupported(ref Ref, err error) bool {
	kind, ok := errors.AsType[*absence.KindError](err)
	return ok && kind.Unsupported && kind.Version == ref.GVK().Version
}

// DescribeUnserved explains why the cluster does not serve a kind at the moment. The text names the kind. The error is
// one to which absence.ClassifyError gives the meaning absence.MeaningNotServed.
func DescribeUnserved(gvk schema.GroupVersionKind, err error) string {
	kind, ok := errors.AsType[*absence.KindError](err)
	switch {
	case ok && kind.Version != "" && kind.Version != gvk.Version:
		return fmt.Sprintf("the cluster does not serve %s yet, only the version %s", gvk, kind.Version)
	case ok && kind.Version != "":
		return fmt.Sprintf("the cluster does not serve %s at the moment, although it lists the kind", gvk)
	case ok && kind.Reason != "":
		return fmt.Sprintf("the cluster does not serve %s at the moment: %s", gvk, kind.Reason)
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("the cluster does not know %s yet", gvk)
	}
	return fmt.Sprintf("the cluster does not serve %s at the moment: %s", gvk, err.Error())
}

// setStatus sets the fields of an Error according to the API server's answer.
func (e *Error) setStatus(status metav1.Status, err error, hide *redact.Redactor) {
	e.StatusReason, e.isFromServer = status.Reason, true
	if found := refusingWebhook.FindStringSubmatch(status.Message); found != nil {
		e.webhook = found[1] + found[2]
	}
	e.Path, e.Message = parseStatus(status, hide)
	switch {
	case absence.IsDenied(err):
		e.Path, e.Message = "", hide.Redact(status.Message)
		if e.StatusReason == metav1.StatusReasonUnauthorized {
			e.StatusReason = metav1.StatusReasonForbidden // the credentials are valid
		}
	case isTooLarge(status):
		e.isFromServer = false
		e.Class, e.Message = ClassPermanent, "the object is too large to be stored (limit about 1.5 MiB)"
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		e.Class, e.Message = ClassWait, "the namespace "+e.Ref.Namespace+" is being deleted"
	case hasNoNamespace(e.Ref, status):
		e.Class, e.Message = ClassWait, "the namespace "+e.Ref.Namespace+" does not exist"
	case isPermanent(status):
		e.Class = ClassPermanent
	}
	if isSecret(e.Ref) {
		e.Message = removeObject(removeValues(e.Message))
	}
	e.Message = toOneLine(e.Message)
}

// refusingWebhook matches the API server's message about an admission webhook that denied a request, or that it could
// not call, and captures the name of the webhook.
var refusingWebhook = regexp.MustCompile(`^(?:Internal error occurred: )?(?:admission webhook "([^"]+)" denied|failed calling webhook "([^"]+)")`)

func isSecret(ref Ref) bool { return ref.APIVersion == "v1" && ref.Kind == "Secret" }

// isPermanent reports whether only a change of the configuration, usually of the manifest, or new credentials can
// resolve the error. The API server reports such errors with several status codes, in some cases even with 500 and no
// reason.
func isPermanent(status metav1.Status) bool {
	switch status.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed,
		http.StatusUnsupportedMediaType, http.StatusUnauthorized:
		return true
	}
	return status.Code == http.StatusInternalServerError &&
		(strings.HasPrefix(status.Message, "failed to create typed patch object") || strings.HasPrefix(status.Message, "failed to convert new object"))
}

func isTooLarge(status metav1.Status) bool {
	return status.Code == http.StatusRequestEntityTooLarge ||
		strings.Contains(status.Message, "etcdserver: request is too large") ||
		strings.Contains(status.Message, "trying to send message larger than max")
}

func hasNoNamespace(ref Ref, status metav1.Status) bool {
	return status.Code == http.StatusNotFound && ref.Namespace != "" &&
		status.Details != nil && status.Details.Kind == "namespaces" && status.Details.Name == ref.Namespace
}

// typedPatch matches errors of server-side apply, such as "failed to create typed patch object (…): .spec.foo: …". It
// captures the field and the reason.
var typedPatch = regexp.MustCompile(`(?s)^failed to (?:create typed patch object|convert new object) \(.*?\): (?:errors:\s*)?(\.\S+): (.*)$`)

// strictDecoding matches the API server's error about fields that the schema of the kind does not contain, and captures
// the list of the fields. The engine requests this validation for all writes of a manifest. Without it, the API server
// drops the fields silently.
var strictDecoding = regexp.MustCompile(`strict decoding error: (.*)$`)

// unknownField captures a field in this list.
var unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)

// listUnknownFields returns the fields that an error of the kind strictDecoding names.
func listUnknownFields(message string) []string {
	var out []string
	if list := strictDecoding.FindStringSubmatch(message); list != nil {
		for _, found := range unknownField.FindAllStringSubmatch(list[1], -1) {
			out = append(out, found[1])
		}
	}
	return out
}

const notDeclared = "field not declared in schema" // as for server-side apply

// parseStatus extracts the field and the reason from an answer of the API server. It removes the values of Secrets from
// both.
func parseStatus(status metav1.Status, hide *redact.Redactor) (path, reason string) {
	message := hide.Redact(status.Message)
	if found := typedPatch.FindStringSubmatch(message); found != nil {
		return found[1], gotValue.ReplaceAllString(found[2], "")
	}
	if unknown := listUnknownFields(message); len(unknown) > 0 {
		reason = notDeclared
		for _, field := range unknown[1:] {
			reason += " ." + field + ": " + notDeclared
		}
		return "." + unknown[0], reason
	}
	if details := status.Details; details != nil && status.Code == http.StatusUnprocessableEntity {
		for _, cause := range details.Causes {
			if cause.Field != "" && cause.Field != "[]" {
				return cleanText(hide, "."+strings.TrimPrefix(cause.Field, ".")), hide.Redact(cause.Message)
			}
		}
	}
	return "", message
}

// These expressions match values in messages of the API server. A value follows "got", or is quoted after "Invalid
// value". The end of a value may be missing because the API server truncates long messages.
var (
	gotValue     = regexp.MustCompile(`(?s), got .*$`)
	invalidValue = regexp.MustCompile(`(?s)Invalid value: (?:"(?:[^"\\]|\\.)*"|.*?)(?:: |$)`)
)

// printedObject matches the text from the beginning of a printed object to the end of the message. The object may be
// printed as JSON, as YAML or in Go syntax.
var printedObject = regexp.MustCompile(`(?s)(?:\{|\bmap\[|\b(?:data|stringData):\s*\n).*$`)

// removeObject removes an object that an admission webhook quotes in its message. The object may contain values that
// the engine does not know, such as values from the previous manifest.
func removeObject(text string) string { return printedObject.ReplaceAllString(text, "…") }

// If the engine does not know the values of a Secret, it cannot search an error for these values. The engine then shows
// only error texts that match one of these expressions. Such a text names the component that denied the request, or the
// missing permission.
var (
	denial       = regexp.MustCompile(`(?s)^(.*?denied (?:the )?request: ).*$`)
	missingRight = regexp.MustCompile(`^secrets … is forbidden: User … cannot \w+ resource … in API group \S+ in the namespace …$`)
)

// removeExplanation removes the API server's explanation from an error about a Secret. It is called unless
// this call has claimed the Secret for the item, because the redactor may not know its values then.
func (e *Error) removeExplanation() {
	switch {
	case !e.isFromServer || missingRight.MatchString(e.Message):
	case denial.MatchString(e.Message):
		e.Message = denial.ReplaceAllString(e.Message, "$1…")
	default:
		e.Message = "the API server rejected the request: " + cmp.Or(string(e.StatusReason), "no reason given")
	}
}

// removeValues removes from a text all parts that may be values of the object.
func removeValues(text string) string {
	text = gotValue.ReplaceAllString(text, "")
	text = invalidValue.ReplaceAllString(text, "")
	return response.QuotedValue.ReplaceAllString(text, "…")
}

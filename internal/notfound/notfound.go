// SPDX-License-Identifier: Apache-2.0

// Package notfound tells a response which proves that an object does not exist from other responses with the status
// 404. A proxy, an API server that is starting, and an admission webhook also send such responses.
package notfound

import (
	"errors"
	"net/http"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deniedMessage matches the API server's message about a request that an admission webhook or an admission policy
// denied.
var deniedMessage = regexp.MustCompile(`^admission webhook "[^"]*" denied the request|^\S+ "[^"]*" is forbidden: (?:ValidatingAdmissionPolicy|policy) ['"].* denied request: `)

// IsDenied reports whether an admission webhook or an admission policy denied the request. The webhook or the policy
// chooses the status code of the answer. The code therefore has no meaning: a 404 says nothing about the existence of
// the object, and the same request may succeed later.
func IsDenied(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && deniedMessage.MatchString(status.Status().Message)
}

// GetStatus returns the status of a response, and reports whether it has the code 404. The code of a denied request
// does not count.
func GetStatus(err error) (status metav1.Status, isNotFound bool) {
	from := apierrors.APIStatus(nil)
	if !errors.As(err, &from) {
		return metav1.Status{}, false
	}
	status = from.Status()
	isNotFound = status.Code == http.StatusNotFound || status.Reason == metav1.StatusReasonNotFound
	return status, isNotFound && !IsDenied(err)
}

// HasObjectName reports whether a status names an object, and the client did not make up its details because the
// response was not a Status.
func HasObjectName(status metav1.Status) bool {
	return status.Details != nil && status.Details.Name != "" && !slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// IsProof reports whether the API server answered that the object of a request does not exist.
func IsProof(err error) bool {
	status, isNotFound := GetStatus(err)
	return isNotFound && HasObjectName(status)
}

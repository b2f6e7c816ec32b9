// SPDX-License-Identifier: Apache-2.0

package absence

import (
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// deniedMessage matches the API server's message about a request that an admission webhook or an admission policy denied.
var deniedMessage = regexp.MustCompile(`^admission webhook "[^"]*" denied the request|^\S+ "[^"]*" is forbidden: (?:ValidatingAdmissionPolicy|policy) ['"].* denied request: `)

// IsDenied reports whether an admission webhook or an admission policy denied the request. The webhook or the policy
// chooses the status code of the answer. The code therefore has no meaning: a 404 says nothing about the existence of the
// object, and the same request may succeed later.
func IsDenied(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && deniedMessage.MatchString(status.Status().Message)
}

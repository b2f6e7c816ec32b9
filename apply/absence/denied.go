// SPDX-License-Identifier: Apache-2.0

package absence

import "github.com/deployerkit/deployerkit/internal/notfound"

// IsDenied reports whether an admission webhook or an admission policy denied the request. The webhook or the policy
// chooses the status code of the answer. The code therefore has no meaning: a 404 says nothing about the existence of
// the object, and the same request may succeed later.
func IsDenied(err error) bool { return notfound.IsDenied(err) }

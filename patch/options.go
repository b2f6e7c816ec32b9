// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultAttempts is how often Apply tries when others write at the same time.
const defaultAttempts = 10

// Option changes how Apply works.
type Option func(*options)

type options struct {
	locked   bool
	attempts int
	reader   client.Reader
	endpoint statusEndpointKind
	owner    client.FieldOwner
}

// Locked applies the patch to exactly the version that the object shows: if another one is stored by now,
// Apply returns the conflict (apierrors.IsConflict) and does not try again. Without it, merge changes alone
// are sent without a lock, and functions are called again on the newer body.
func Locked() Option { return func(o *options) { o.locked = true } }

// Attempts bounds how often Apply tries when it meets conflicts, the first time included. Less than one: 10.
func Attempts(n int) Option { return func(o *options) { o.attempts = n } }

// ReadFrom says where to read the object after a conflict; nil: the client that writes. Give it a live
// reader (mgr.GetAPIReader()) when the client reads unstructured objects from a cache.
func ReadFrom(reader client.Reader) Option { return func(o *options) { o.reader = reader } }

// StatusSubresource says whether the kind has a status subresource. Without this option Apply finds out and
// remembers it per kind as long as the process lives; that costs a call when the kind has none and a patch
// of the status alone is the first one ever.
func StatusSubresource(exists bool) Option {
	return func(o *options) {
		o.endpoint = statusInBody
		if exists {
			o.endpoint = statusApart
		}
	}
}

// Owner names the field manager of the writes. Empty: the API server's default.
func Owner(name string) Option { return func(o *options) { o.owner = client.FieldOwner(name) } }

func newOptions(c client.Client, opts []Option) options {
	out := options{}
	for _, opt := range opts {
		if opt != nil {
			opt(&out)
		}
	}
	if out.attempts < 1 {
		out.attempts = defaultAttempts
	}
	if out.reader == nil {
		out.reader = c
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/patching"
)

// Option changes the behavior of Apply.
type Option func(*patching.Options)

// WithOptimisticLock restricts the patch to the version of the object that is passed to Apply. If another version is
// stored, Apply returns the conflict (apierrors.IsConflict) and does not retry. A change of finalizers or
// ownerReferences that is made through a View has the same effect, because it replaces the whole list.
func WithOptimisticLock() Option { return func(o *patching.Options) { o.Locked = true } }

// WithMaxAttempts sets the maximum number of attempts if there are conflicts, including the first attempt. If n is less
// than one, the default of 10 is used.
func WithMaxAttempts(n int) Option { return func(o *patching.Options) { o.Attempts = n } }

// WithReader sets the reader with which Apply reads the object. The default is the client that Apply uses for writes.
// Set a live reader (mgr.GetAPIReader()) if that client reads unstructured objects from a cache.
func WithReader(reader client.Reader) Option { return func(o *patching.Options) { o.Reader = reader } }

// WithStatusSubresource sets whether the kind has a status subresource. Without this option, Apply detects whether the
// subresource exists, and remembers the answer for each kind until the process ends. The detection costs one additional
// call if the kind has no status subresource and the first patch of an object of this kind changes only the status.
func WithStatusSubresource(exists bool) Option {
	return func(o *patching.Options) {
		o.Endpoint = patching.StatusEndpointMain
		if exists {
			o.Endpoint = patching.StatusEndpointSubresource
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/patching"
)

// Option changes how Apply works.
type Option func(*patching.Options)

// Locked applies the patch only to the version of the object that was passed to Apply. If another version is stored,
// Apply returns the conflict (apierrors.IsConflict) and does not retry. A merge change of finalizers or ownerReferences
// has the same effect, because it replaces the whole list.
func Locked() Option { return func(o *patching.Options) { o.Locked = true } }

// Attempts sets how often Apply tries when there are conflicts, including the first attempt. If n is less than one, the
// default of 10 is used.
func Attempts(n int) Option { return func(o *patching.Options) { o.Attempts = n } }

// ReadFrom sets the reader of the object. The default is the client that writes. Set a live reader (mgr.GetAPIReader())
// if the client reads unstructured objects from a cache.
func ReadFrom(reader client.Reader) Option { return func(o *patching.Options) { o.Reader = reader } }

// StatusSubresource sets whether the kind has a status subresource. Without this option Apply detects it and remembers
// it per kind for the life of the process. The detection costs one call if the kind has none and its first patch
// changes only the status.
func StatusSubresource(exists bool) Option {
	return func(o *patching.Options) {
		o.Endpoint = patching.StatusEndpointMain
		if exists {
			o.Endpoint = patching.StatusEndpointSubresource
		}
	}
}

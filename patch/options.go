// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/patching"
)

// Option changes how Apply works.
type Option func(*patching.Options)

// Locked applies the patch to exactly the version that the object shows. If another one is stored by now, Apply returns the conflict
// (apierrors.IsConflict) and does not try again. A merge change of finalizers or ownerReferences has the same effect, because it
// replaces the whole list.
func Locked() Option { return func(o *patching.Options) { o.Locked = true } }

// Attempts bounds how often Apply tries when it meets conflicts, the first time included. Less than one means 10.
func Attempts(n int) Option { return func(o *patching.Options) { o.Attempts = n } }

// ReadFrom sets the reader of the object, by default the client that writes. Set a live reader (mgr.GetAPIReader()) when the client
// reads unstructured objects from a cache.
func ReadFrom(reader client.Reader) Option { return func(o *patching.Options) { o.Reader = reader } }

// StatusSubresource sets whether the kind has a status subresource. Without this option Apply finds out and remembers it per kind as
// long as the process lives. That costs a call when the kind has none and a patch of the status alone is the first one ever.
func StatusSubresource(exists bool) Option {
	return func(o *patching.Options) {
		o.Endpoint = patching.StatusEndpointMain
		if exists {
			o.Endpoint = patching.StatusEndpointSubresource
		}
	}
}

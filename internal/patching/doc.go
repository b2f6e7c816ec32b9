// SPDX-License-Identifier: Apache-2.0

// Package patching sends the changes of objects. Package patch and the status writer of deployerlib use it. Package
// jsondiff computes the changes.
//
// Apply changes an object according to a Content, which consists of a merge patch and functions. It retries after
// conflicts. Write sends one merge patch for a given version of an object, and returns conflicts to the caller. If the
// client may not send patches, Apply and Write send updates.
package patching

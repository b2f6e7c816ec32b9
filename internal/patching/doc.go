// SPDX-License-Identifier: Apache-2.0

// Package patching is the engine of package patch and of the status writer of deployerlib. It compares JSON bodies,
// encodes the differences and sends them.
//
// Apply applies a Content, which consists of merge changes and functions, to an object and retries after conflicts.
// Write sends one merge patch that is bound to a version, and leaves conflicts to the caller. Both fall back to updates
// if patches are forbidden.
package patching

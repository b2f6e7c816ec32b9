// SPDX-License-Identifier: Apache-2.0

// Package fields compares, merges and copies Kubernetes objects in the form of decoded JSON. Its functions are pure and
// do not modify their arguments.
package fields

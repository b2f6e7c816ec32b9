// SPDX-License-Identifier: Apache-2.0

// Package fields names the fields that differ between two Kubernetes objects in the form of decoded JSON. It ignores
// the fields that the API server maintains itself. Its functions do not modify their arguments.
package fields

// SPDX-License-Identifier: Apache-2.0

// Package version compares resource versions of objects.
package version

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Older reports whether resource version a certainly precedes b. Versions that cannot be compared, such as an empty
// one, are not older than each other.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

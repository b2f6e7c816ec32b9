// SPDX-License-Identifier: Apache-2.0

// Package version compares resource versions of objects.
package version

import "k8s.io/apimachinery/pkg/util/resourceversion"

// IsOlder reports whether the resource version a is older than b. It returns false if the versions cannot be compared,
// for example because one of them is empty.
func IsOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// SPDX-License-Identifier: Apache-2.0

// Package behaviours connects the promises of docs/behaviours.md with the
// tests that prove them. A test names a promise by its ID in square brackets,
// in its name, in a string or in a comment of the test function:
//
//	t.Run("copies a lone result [ID]", …)
//
// [Scan] finds these names, [Fill] writes them into the last column of the
// table rows and tells which promise has no test.
package behaviours

// SPDX-License-Identifier: Apache-2.0

// Package evidence records which test proves which promise of docs/behaviours.md.
//
// The facts come from a run of the tests. hack/gotest writes one [Report] per package that passed, with the names of
// the tests and specs that ran and passed. A name that has the ID of a promise in square brackets proves it:
//
//	t.Run("copies a lone result [L15]", …)
//
// [Collect] reads all reports. The file docs/evidence.txt holds the result. [Check] compares it with the reports of a
// complete run and with the promises.
package evidence

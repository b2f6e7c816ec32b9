// SPDX-License-Identifier: Apache-2.0

// Package evidence records which test proves which promise of docs/behaviours.md.
//
// The evidence comes from the events of a test run (`go test -json`) and from Ginkgo's reports. For each package that
// passed, a [Report] contains the names of the tests and specs that ran and passed. A test proves a promise if its name
// contains the ID of the promise in square brackets:
//
//	t.Run("copies a lone result [L15]", …)
//
// [ReadReports] creates the reports. Their proofs are stored in docs/evidence.txt. [Check] compares proofs with the
// promises, and [ListMissing] compares two lists of proofs.
package evidence

// SPDX-License-Identifier: Apache-2.0

// Package spoiled is a suite that proves that every check of package conformance can fail, and for the right reason.
//
// It has a small conforming deployer, written without this library, and a table of faults. A fault changes what the
// deployer reads (it sees a different item) or what it writes (it stores something else). Each row of the table lists
// the checks that must fail, with their messages, and those that still pass. The deployer without faults passes all
// checks.
package spoiled

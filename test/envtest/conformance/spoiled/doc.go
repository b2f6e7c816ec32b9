// SPDX-License-Identifier: Apache-2.0

// Package spoiled is a suite that proves that each check of package conformance can fail, and that it fails for the
// right reason.
//
// The suite contains a small conforming deployer, which does not use this library, and a table of faults. A fault
// changes items when the deployer reads or writes them. Each row of the table contains a fault, the checks that must
// fail because of it, with their messages, and checks that must still pass. Without a fault, the deployer passes all
// checks.
package spoiled

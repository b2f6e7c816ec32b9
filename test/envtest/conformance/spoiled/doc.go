// SPDX-License-Identifier: Apache-2.0

// Package spoiled is a suite that shows that every check of package conformance can fail, and for the right reason.
//
// It has a small deployer that keeps the contract, written without this library, and a table of faults. A fault spoils what
// the deployer reads (it sees an item that is not quite so) or what it writes (it stores something else). Each row of the
// table says which checks must fail then, with what they say, and which still pass. The good deployer itself passes all.
package spoiled

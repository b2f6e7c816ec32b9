// SPDX-License-Identifier: Apache-2.0

// Package faults is a suite on a real API server that does to the library what
// should not happen and does: bad items, bad hooks, bad deployers, an API server
// that refuses, loses answers or vanishes, conflicts, and processes that die.
// It also counts requests: one call more than docs/contract.md promises fails.
package faults

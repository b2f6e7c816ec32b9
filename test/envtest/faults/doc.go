// SPDX-License-Identifier: Apache-2.0

// Package faults is a suite with a real API server that exposes the library to faults: invalid items, faulty hooks and
// deployers, an API server that rejects requests, loses responses or stops, conflicts, and processes that are killed.
// It also counts requests, and fails if there is one more than docs/contract.md promises.
package faults

// SPDX-License-Identifier: Apache-2.0

// Package faults is a suite that tests how the library handles faults, with a real API server: invalid items, faulty
// hooks and deployers, conflicts, processes that are killed, and an API server that rejects requests, loses responses
// or stops. The suite also counts requests, and fails if there are more requests than docs/contract.md promises.
package faults

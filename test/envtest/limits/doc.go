// SPDX-License-Identifier: Apache-2.0

// Package limits tests deployers at their limits, with a real API server: a configuration of 1 MiB, a status that is
// too large, 5000 manifests, and 10 000 items in one process. In each case, the item either succeeds or fails with
// an error code and a single line that says what is too large. Nothing is lost.
//
// The suite prints its measurements. It measures the memory of the test process, in which the deployer runs. The
// benchmarks measure memory without the race detector:
//
//	go test -run='^$' -bench=Limits ./test/envtest/limits
package limits

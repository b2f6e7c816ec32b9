// SPDX-License-Identifier: Apache-2.0

// Package limits tests deployers with the largest possible items and a real API server: a configuration of 1 MiB, a
// status that is too large, 5000 manifests, and 10 000 items in one process. Each either works or is rejected with a
// code and one line that says what is too large, and nothing is lost.
//
// The suite prints its measurements. Memory is that of the test process, in which the deployer runs. Only the
// benchmarks measure it without the race detector:
//
//	go test -run='^$' -bench=Limits ./test/envtest/limits
package limits

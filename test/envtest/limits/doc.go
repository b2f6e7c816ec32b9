// SPDX-License-Identifier: Apache-2.0

// Package limits takes deployers to what an item can be at most, against a real API server: a configuration of 1 MiB, a
// status that does not fit, 5000 manifests, 10 000 items in one process. Each either works or is refused with a code and
// one line that says what is too much, and nothing is lost.
//
// The suite prints what it measured. Memory is that of the test's process, in which the deployer runs, and only the
// benchmarks measure it without the race detector:
//
//	go test -run='^$' -bench=Limits ./test/envtest/limits
package limits

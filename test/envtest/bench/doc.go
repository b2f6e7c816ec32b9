// SPDX-License-Identifier: Apache-2.0

// Package bench measures the library with a real API server, next to a bare controller-runtime loop that makes only the
// same writes, in the same run:
//
//	go test -run='^$' -bench=Jobs ./test/envtest/bench
//
// The ratio of both is the cost of the library on top of what the contract requires. The absolute numbers depend on the
// machine. Package race does the same for objects in a target.
package bench

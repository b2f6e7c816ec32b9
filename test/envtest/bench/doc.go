// SPDX-License-Identifier: Apache-2.0

// Package bench measures the library against a real API server, next to a bare
// controller-runtime loop that does only the same writes, in the same run:
//
//	go test -run='^$' -bench=Jobs ./test/envtest/bench
//
// The ratio of both says what the library costs on top of what the contract
// asks for; the absolute numbers are those of the machine. Package race does the same for objects in a target.
package bench

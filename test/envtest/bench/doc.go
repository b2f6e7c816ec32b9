// SPDX-License-Identifier: Apache-2.0

// Package bench measures the library with a real API server. In the same run, it also measures a bare
// controller-runtime loop that only makes the same writes:
//
//	go test -run='^$' -bench=Jobs ./test/envtest/bench
//
// The ratio of the two results shows how much time the library needs in addition to the writes that the contract
// requires. The absolute numbers depend on the machine. Package race makes such measurements for objects in a target.
package bench

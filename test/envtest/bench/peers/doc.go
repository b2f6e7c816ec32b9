// SPDX-License-Identifier: Apache-2.0

// Package peers compares package apply with other tools for the same purpose: kubectl, and Flux's library. It is a
// module of its own, so that their dependencies are not in the library's go.mod.
//
//	cd test/envtest/bench/peers && go test -run='^$' -bench=.
package peers

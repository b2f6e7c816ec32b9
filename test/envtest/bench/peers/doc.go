// SPDX-License-Identifier: Apache-2.0

// Package peers races package apply against the tools that people use for the same thing: kubectl, and Flux's library.
// It is a module of its own, so that what they depend on stays out of the library's go.mod.
//
//	cd test/envtest/bench/peers && go test -run='^$' -bench=.
package peers

// SPDX-License-Identifier: Apache-2.0

// Package peers compares package apply with other tools for the same purpose: kubectl and Flux's library. It is a
// separate module, so that DeployerKit does not depend on these tools.
//
//	cd test/envtest/bench/peers && go test -run='^$' -bench=.
package peers

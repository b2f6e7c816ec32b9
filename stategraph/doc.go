// SPDX-License-Identifier: Apache-2.0

// Package stategraph makes a deployer of a graph of resources, each of which runs when all that it requires are ready.
package stategraph

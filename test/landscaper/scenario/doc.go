// SPDX-License-Identifier: Apache-2.0

// Package scenario has the scenarios that test deployers with the real Landscaper: Installations with inline
// blueprints, what is done to them, and the expected results. The suite runs them with the deployers of this module,
// and the benchmark also with Landscaper's own.
//
// A [Scenario] is a list of steps. Each runs in a namespace of its own, so that many can run at the same time.
// [Measure] counts what the deployer did meanwhile, from the audit log of the API server ([Audit]).
package scenario

//go:generate go run ./generate ../../../docs/benchmarks.md

// SPDX-License-Identifier: Apache-2.0

// Package scenario contains scenarios that test deployers with the real Landscaper. A scenario consists of
// Installations with inline blueprints, operations on these Installations, and the expected results. The suite runs the
// scenarios with the deployers of this module. The benchmark also runs them with Landscaper's own deployers.
//
// A [Scenario] is a list of steps of package internal/steps. Each scenario runs in its own namespace, so many scenarios
// can run at the same time. A [Runner] runs a scenario and counts the requests of the deployers in the audit log of the
// API server ([Audit]).
package scenario

//go:generate go run ./generate ../../../docs/benchmarks.md

// SPDX-License-Identifier: Apache-2.0

// Package demo implements `deployerkit demo`. It starts a control plane, runs the mock deployer and the manifest
// deployer on it in this process, deploys the items of examples/deploy-items and runs a scenario in which items are
// changed, aborted, forced and deleted. It waits for every outcome of the scenario and checks it; [Run] fails if a
// check fails.
//
// With the option Landscaper, it runs the real Landscaper instead of playing its part, and runs another scenario: the
// Installations of examples/landscaper are installed, changed and deleted.
//
// scenario.go and landscaper_scenario.go contain the scenarios, and are the files to read first. env.go starts the
// control plane and the deployers, state.go holds what is known about the items, and terminal.go displays it: as a live
// table on a terminal, and as lines otherwise.
package demo

// SPDX-License-Identifier: Apache-2.0

// Package demo shows a deployer at work: it starts a control plane, runs the
// mock deployer on it in this process, deploys the items of
// examples/deploy-items and walks through a scenario in which items are changed,
// aborted, forced and deleted. Every outcome that the scenario checks for is awaited
// and checked; [Run] fails if one does not come true.
//
// With the option Landscaper, it runs the real Landscaper instead of playing
// its part, and tells another scenario: the Installations of examples/landscaper
// are installed, changed and deleted.
//
// scenario.go and landscaper_scenario.go are the scenarios and the part to read,
// env.go the control plane and the deployers, state.go what is known about
// the items, terminal.go how it is shown: a live table on a terminal, lines
// elsewhere.
package demo

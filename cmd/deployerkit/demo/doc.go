// SPDX-License-Identifier: Apache-2.0

// Package demo implements `deployerkit demo`. The command starts a control plane, runs the mock deployer and the
// manifest deployer in this process, and deploys the items in examples/deploy-items. It then runs a scenario in which
// items are changed, aborted, forced and deleted. After each step, it waits for the expected outcome. [Run] returns an
// error if an outcome differs.
//
// By default, the demo simulates Landscaper. With the option Landscaper, it runs the real Landscaper and another
// scenario, in which the Installations in examples/landscaper are installed, changed and deleted.
//
// To understand the code, read scenario.go and landscaper_scenario.go first. They contain the scenarios. env.go starts
// the control plane and the deployers. state.go records the state of the items. terminal.go displays this state.
package demo

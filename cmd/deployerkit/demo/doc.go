// SPDX-License-Identifier: Apache-2.0

// Package demo implements `deployerkit demo`. The command starts a control plane, runs the mock deployer and the
// manifest deployer in this process, and deploys the items in examples/deploy-items. It then changes, aborts, forces
// and deletes items. After each step, it waits for the expected state. [Run] returns an error if it finds another
// state.
//
// By default, the demo simulates Landscaper. With the option Landscaper, it runs the real Landscaper, and installs,
// changes and deletes the Installations in examples/landscaper.
//
// To understand the code, read deployitems.go and installations.go first. They contain the steps of the demo. setup.go
// starts the control plane and the deployers. table.go records the state of the items, and terminal.go displays it.
package demo

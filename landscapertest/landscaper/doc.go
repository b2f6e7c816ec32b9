// SPDX-License-Identifier: Apache-2.0

// Package landscaper runs the real Landscaper on a test control plane, so that a deployer can be tested with the
// controller that it is written for:
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true})
//	if err != nil { … }
//	ls := landscaper.StartLandscaper(t, cp, landscaper.Options{PickupTimeout: 5 * time.Second})
//
// From then on Landscaper turns each Installation in the cluster into deploy items, hands out their jobs, and collects
// their exports. Start the deployer under test as well.
//
// Landscaper's controllers run in two processes, like those of its chart: one for Installations and Executions, and one
// for Contexts, pickup timeouts and TargetSyncs. Its webhooks do not run, so the controller rejects invalid
// Installations instead of the API server. Landscaper's own deployers can be started with [Landscaper.StartDeployer],
// to compare a deployer with them.
//
// # Where the programs come from
//
// The programs are built from Go modules, in a module of their own, because Landscaper's module cannot be required
// without its replace directives. The build takes a few minutes and runs once per machine; see [Programs]. Only
// versions that the module proxy can resolve can be built. [Version] follows the job-ID revision of the contract. For
// the annotation revision, use [github.com/deployerkit/deployerkit/landscapertest.Landscaper], which plays Landscaper.
package landscaper

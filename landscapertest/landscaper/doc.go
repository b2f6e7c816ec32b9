// SPDX-License-Identifier: Apache-2.0

// Package landscaper runs the real Landscaper on a test control plane. With this package, a test can run a deployer
// together with Landscaper's own controllers:
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true})
//	if err != nil { … }
//	ls := landscaper.StartLandscaper(t, cp, landscaper.Options{PickupTimeout: 5 * time.Second})
//
// From then on Landscaper turns each Installation in the cluster into deploy items, hands out their jobs, and collects
// their exports. Start the deployer under test as well.
//
// Landscaper's controllers run in two processes, as in Landscaper's chart: one process for Installations and
// Executions, and one process for Contexts, pickup timeouts and TargetSyncs. Landscaper's webhooks do not run.
// Therefore, invalid Installations are rejected by the controller and not by the API server. To compare a deployer with
// Landscaper's own deployers, start Landscaper's deployers with [Landscaper.StartDeployer].
//
// # Where the programs come from
//
// The programs are built from Go modules. The build uses a separate module, because Landscaper's module does not build
// without its replace directives. The first build on a machine takes a few minutes; see [FindPrograms]. Landscaper's
// version must be one that the module proxy can resolve. [Version] follows the job-ID revision of the contract. For the
// annotation revision, use [github.com/deployerkit/deployerkit/landscapertest.Landscaper], which simulates Landscaper.
package landscaper

// SPDX-License-Identifier: Apache-2.0

// Package upkeep maintains the objects of deploy items in their targets. It contains what deployers that apply
// objects share: one client with watches per target, the correction of drift, waiting without a blocked worker, and
// the checkpoints of the inventory. Package apply writes objects, apply/watch watches them, and deployerlib calls the
// deployer; this package connects the three.
//
// A deployer has one Keeper and begins a Run per call:
//
//	func (d *deployer) UseRuntime(rt deployerlib.Runtime) error          { return d.keeper.UseRuntime(rt) }
//	func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.keeper.Hooks(nil) }
//
//	func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
//		r, err := d.begin(ctx, di)                     // reads the inventory of the provider status: Keeper.Begin
//		if err != nil {
//			return err
//		}
//		if err := r.Connect(ctx, target); err != nil {
//			return err
//		}
//		if _, err := r.Apply(ctx, desired(di), apply.Options{}); err != nil {
//			return err
//		}
//		if err := r.AwaitReady(ctx, 0); err != nil {
//			return err
//		}
//		r.Finished()
//		return nil
//	}
//
// Delete consists of Begin, Connect and Run.Delete. Resume consists of Begin and Run.Resume. ForceReconcile calls
// Keeper.Thorough first. The example of the package contains all of this.
//
// # Errors
//
// A deployer returns what a step of a Run returns. The error is nil if the step is done. It is a
// [deployerlib.WaitFor] if the step is not done yet; the item then comes back when a watch of its target reports a
// change, or after a while at the latest. Any other error has its code: faults that only another configuration or
// another Target can correct end the job, and the others are tried again.
//
// # What starts a background run
//
// The hook "wake" of Keeper.Hooks forces a run of a finished item in these cases:
//
//   - The item drifted, because its objects were changed or deleted. If that happens again and again, the corrections are
//     delayed more and more.
//   - Keeper.Wake was called, for reasons of the deployer's own.
//
// The schedule that is passed to Hooks also causes thorough runs, which do not trust any object to be unchanged. The
// owner of an item switches all three off with the annotation of package continuousreconcile.
//
// Run.Take consumes the triggers of a run. Later triggers start another run. A run that fails gives its triggers
// back, so nothing is lost, and any number of triggers cause one run.
//
// While another writer fights with an item about an object, a run with another trigger leaves that object alone. Jobs
// and thorough runs write it.
//
// # More than Apply
//
// A deployer that applies step by step makes its own engine or Session with Run.Options, between Run.Take, Run.Hold
// and Run.Settle, which are the parts of Apply. Run.LookOut waits for objects that do not belong to the item.
// Keeper.Follow watches such objects for as long as the deployer wants, with one watch for all objects of a kind.
// Cluster.Go runs goroutines that belong to a target, such as informers, and Cluster.Keep keeps the target open for
// them.
//
// # Memory
//
// Everything that is known about an item is in memory, and losing it only costs reads. After a restart, Resume
// compares the objects with the inventory. Run.Delete and Keeper.Forget remove the memory of an item. Items that
// disappear without either, by delete-without-uninstall, are found within ten minutes. Targets that no item needs are
// closed within ten minutes as well.
package upkeep

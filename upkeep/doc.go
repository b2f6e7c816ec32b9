// SPDX-License-Identifier: Apache-2.0

// Package upkeep keeps the objects of deploy items in their targets. It is what
// deployers that apply objects share: one client with watches per target, the
// healing of drift, waiting without a blocked worker, and the inventory's
// checkpoints. Package apply writes objects, apply/watch sees them, deployerlib
// calls the deployer; this package ties the three together.
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
// Delete is Begin, Connect and Run.Delete; Resume is Begin and Run.Resume;
// ForceReconcile calls Keeper.Thorough first. The example of the package has all
// of it.
//
// # Errors
//
// What a step of a Run returns is what the deployer returns. An error is nil
// (done), a [deployerlib.WaitFor] (not done yet: the item comes back when a
// watch of its target says that something changed, at the latest after a while),
// or an error with its code: faults that only another configuration or another
// Target can mend end the job, the others are tried again.
//
// # What begins a background run
//
// The hook "wake" of Keeper.Hooks forces a run of a finished item
//
//   - that drifted: somebody changed or deleted what the item applied. Who does
//     so again and again is answered ever more slowly.
//   - that Keeper.Wake was called for, for reasons of the deployer's own.
//
// With the schedule that Hooks is given there are thorough runs, too: those
// believe nothing to be unchanged. The owner of an item switches all three off
// with the annotation of package continuousreconcile.
//
// Run.Take takes what woke a run; what comes after it is for the next one. A run
// that fails gives it back. So nothing gets lost, and any number of wishes are
// one run.
//
// While somebody fights with an item about an object, a run that is woken for
// another reason leaves that object alone. Jobs and thorough runs write it.
//
// # More than Apply
//
// A deployer that applies step by step makes an engine or a Session of its own
// with Run.Options, between Run.Take, Run.Hold and Run.Settle, which Apply
// consists of. Run.LookOut waits for objects that are not the item's own.
// Keeper.Follow watches such objects for as long as the deployer wants, with one
// watch for all of a kind.
// Cluster.Go runs goroutines that belong to a target, such as informers;
// Cluster.Keep holds the target open for them.
//
// # Memory
//
// All that is known of an item is in memory, and losing it costs reads only:
// after a restart Resume compares what is there with the inventory. It goes with
// Run.Delete or Keeper.Forget. Items that went without either, by
// delete-without-uninstall, are found within ten minutes. Targets that no item
// needs are closed within ten minutes as well.
package upkeep

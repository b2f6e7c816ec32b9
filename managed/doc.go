// SPDX-License-Identifier: Apache-2.0

// Package managed maintains the objects of deploy items in their target clusters. It is meant for all deployers that
// apply Kubernetes objects. For each target, it provides one client with watches. It corrects drift, waits without
// blocking a worker, and stores checkpoints of the inventory. It connects three other packages: package apply writes
// objects, package observe watches them, and package deployerlib calls the deployer.
//
// A deployer creates one ResourceManager, and begins a Run in each call:
//
//	func (d *deployer) UseRuntime(rt deployerlib.Runtime) error          { return d.manager.UseRuntime(rt) }
//	func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.manager.NewHooks(nil) }
//
//	func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
//		r, err := d.begin(ctx, di)                     // reads the inventory of the provider status: ResourceManager.Begin
//		if err != nil {
//			return err
//		}
//		if err := r.Connect(ctx, target); err != nil {
//			return err
//		}
//		if _, err := r.Apply(ctx, desired(di), apply.Options{}); err != nil {
//			return err
//		}
//		if err := r.CheckAllReady(ctx, 0); err != nil {
//			return err
//		}
//		r.Finish()
//		return nil
//	}
//
// Delete calls Begin, Connect and Run.Delete. Resume calls Begin and Run.StartWatches. ForceReconcile calls
// ResourceManager.ForceResync first. The example of the package contains all of these methods.
//
// # Errors
//
// A deployer returns the error of each step of a Run unchanged. The error is nil if the step is done. If the step is
// not done yet, the error is a [deployerlib.WaitFor]. The item is then reconciled again when a watch of its target
// reports a change, or after some time at the latest. All other errors contain an error code. If only a different
// configuration or a different Target can resolve the error, the job fails. Otherwise it is retried.
//
// # What starts a background run
//
// A background run is a run of an item whose job is finished. The hook "check-triggers" of ResourceManager.NewHooks
// starts a background run in these cases:
//
//   - Another writer changed or deleted an object of the item (drift). If the same change occurs repeatedly, the
//     corrections are delayed more and more.
//   - The deployer called ResourceManager.Trigger to request a run for its own reasons.
//
// The schedule that is passed to NewHooks also starts runs. These runs are forced resyncs: they check every object,
// even if no watch reported a change. The owner of an item can disable all three causes with the annotation of package
// continuousreconcile.
//
// Each cause is added to the Triggers of the item. Run.TakeTriggers takes all causes that are present when a run
// begins. Causes that arrive later start another run. If a run fails, its triggers are queued again, so that none is
// lost. Package deployerlib decides when the run for a trigger starts: not before the backoff of a failed item has
// passed, and not within DeployerArgs.MinInterval after the previous background run.
//
// If another writer and the deployer repeatedly overwrite each other's changes of an object (a fight), corrections of
// this object are delayed. A background run that was started for another reason does not shorten the delay. Jobs and
// forced resyncs always correct the object.
//
// # Applying step by step
//
// A deployer that applies objects step by step creates its own engine or Session with Run.CompleteOptions. Before that,
// it calls Run.TakeTriggers and Watcher.Suspend, and afterwards Run.RecordResult. Run.Apply consists of the same steps.
// The Watcher of a Cluster can also watch objects that do not belong to the item: Run.WatchUntilChanged does so until
// the end of the run, and observe.WatchRequest.Subscribe for as long as the deployer needs. Cluster.Go runs goroutines
// that belong to a target, such as informers, and Cluster.KeepOpen keeps the target open for them.
//
// # Memory
//
// All data about an item is in memory. If the data is lost, the only consequence is additional reads. After a restart,
// Resume compares the objects with the inventory. Run.Delete and ResourceManager.Forget remove an item from memory.
// Items that disappear without either call, because of delete-without-uninstall, are detected within ten minutes.
// Targets that no item needs are closed within ten minutes as well.
package managed

// SPDX-License-Identifier: Apache-2.0

// Package continuousreconcile provides a hook that reconciles deploy items on a schedule even if they have not changed,
// so that manual changes to the deployed objects are overwritten.
//
// A deployer defines where an item has its schedule, and registers the setup:
//
//	next := continuousreconcile.FromSpec(func(di *lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
//		config, err := decode(di)
//		if err != nil {
//			return nil, err
//		}
//		return config.ContinuousReconcile, nil
//	})
//	hooks.RegisterHookSetup(continuousreconcile.ContinuousReconcileExtensionSetup(next))
//
// An item is due at the next scheduled time after its status.lastReconcileTime, plus a jitter of at most 10 % of the
// period and 5 minutes that depends only on the item's UID. Nothing else is stored, so a due time does not move until a
// run took place, and every replica computes the same one. Failed items are due like succeeded ones. Cron schedules are
// in UTC unless they name a time zone ("CRON_TZ=Europe/Berlin 0 6 * * *").
//
// The owner of an item turns continuous reconciliation off by setting the annotation [ActiveAnnotation] to "false".
package continuousreconcile

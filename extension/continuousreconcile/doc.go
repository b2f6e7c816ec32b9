// SPDX-License-Identifier: Apache-2.0

// Package continuousreconcile provides a hook that reconciles deploy items on a schedule even if they have not changed,
// so that manual changes to the deployed objects are overwritten.
//
// A deployer passes a function that returns the schedule of an item, and registers the setup:
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
// The due time of an item is the next scheduled time after status.lastReconcileTime, plus a jitter. The jitter depends
// only on the item's UID, and is at most 10 % of the period and at most 5 minutes. A due time therefore does not move
// before a run has taken place, and every replica computes the same due time. It does not matter whether the last run
// failed. A cron schedule is in UTC unless the schedule names a time zone ("CRON_TZ=Europe/Berlin 0 6 * * *").
//
// The owner of an item can turn continuous reconciliation off by setting the annotation [ActiveAnnotation] to "false".
package continuousreconcile

// SPDX-License-Identifier: Apache-2.0

// Package continuousreconcile has a hook that reconciles deploy items on a schedule although nothing in them changed,
// so that manual changes to what they deployed are overwritten.
//
// A deployer says where the schedule of an item lies and registers the setup:
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
// An item is due at the next time after its status.lastReconcileTime, plus a jitter of at most 10 % of the period and
// 5 minutes that depends on nothing but the item's UID. Nothing else is stored, so a due time never moves until a run
// took place, and every replica computes the same. Failed items are due like succeeded ones. Cron schedules are in
// UTC unless they name a time zone ("CRON_TZ=Europe/Berlin 0 6 * * *").
//
// The owner of an item turns it off with the annotation [ActiveAnnotation] set to "false".
package continuousreconcile

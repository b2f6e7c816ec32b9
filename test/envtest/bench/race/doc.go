// SPDX-License-Identifier: Apache-2.0

// Package race lets contenders deploy the same objects to the same API server, in turns, and compares their times and
// calls:
//
//	result, err := race.Run(ctx, cp, 5, race.Bare(), race.Engine(), race.Kubectl())
//	fmt.Print(result)
//
// A turn is 20 items of 50 ConfigMaps, four items at a time, in three legs: everything is new, nothing changed, and one
// ConfigMap of each item changed. After each leg the content of the cluster is checked. The order of the contenders
// changes from round to round, and the best round of each counts, because other load on the machine makes no contender
// faster. The API server counts the calls, for all contenders in the same way.
//
// The numbers depend on the machine, which client, API server and etcd share. Compare only the ratios.
package race

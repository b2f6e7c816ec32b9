// SPDX-License-Identifier: Apache-2.0

// Package race lets contenders bring the same objects to the same API server, in turns, and compares what they took:
//
//	result, err := race.Run(ctx, cp, 5, race.Bare(), race.Engine(), race.Kubectl())
//	fmt.Print(result)
//
// A turn is 20 items of 50 ConfigMaps, four items at a time, in three legs: everything is new; nothing changed; one
// ConfigMap of each item changed. After each leg the race looks whether the cluster holds what it should. The order of
// the contenders changes from round to round, and the best round of each counts: what else the
// machine does makes no contender faster. Calls are counted by the API server, for all contenders in the same way.
//
// The numbers are those of the machine: client, API server and etcd share it. The ratios are what to look at.
package race

// SPDX-License-Identifier: Apache-2.0

// Package race compares the times and the API calls of several contenders. They deploy the same objects to the same API
// server, one after the other:
//
//	result, err := race.Run(ctx, cp, 5, race.NewBare(), race.NewEngine(), race.Kubectl())
//	fmt.Print(result)
//
// In its turn, a contender deploys 20 items of 50 ConfigMaps each, four items at a time. A turn has three legs:
// everything is new, nothing has changed, and one ConfigMap of each item has changed. After each leg, the content of
// the cluster is checked. The order of the contenders differs from round to round. The median round of each contender
// counts, so that a round during other load does not matter. The API server counts the calls, in the same way for all
// contenders.
//
// The client, the API server and etcd run on the same machine. The absolute numbers depend on this machine, so compare
// only the ratios.
package race

// SPDX-License-Identifier: Apache-2.0

// Package history remembers the last reconciles of each deploy item in bounded memory, and serves them as JSON.
//
// A deployer records them if it gets a Store in deployerlib.DeployerArgs.History. deployermain makes one and serves it at
// --history-bind-address. A record names the phases of the pipeline with verdict and duration, the hooks with their results,
// the API calls by cluster, verb and resource, what triggered the reconcile, and when the next one is due. It has no text of an
// error and no content of any object, only error codes.
//
//	store := history.NewStore(0)
//	args.History = store
//	handler := history.Handler(store, reviewer)
package history

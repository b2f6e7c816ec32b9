// SPDX-License-Identifier: Apache-2.0

// Package history records the last reconciles of each deploy item in a limited amount of memory, and serves them as
// JSON.
//
// A deployer records them if deployerlib.DeployerArgs.History is a Store. deployermain creates one and serves it at
// --history-bind-address. A record has the phases of the pipeline with verdict and duration, the hooks with their
// results, the API calls by cluster, verb and resource, the trigger of the reconcile, and the time of the next one. It
// contains no text of an error and no content of an object, only error codes.
//
//	store := history.NewStore(0)
//	args.History = store
//	handler := history.Handler(store, reviewer)
package history

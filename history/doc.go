// SPDX-License-Identifier: Apache-2.0

// Package history records the last reconciles of each deploy item and serves them as JSON. It uses a limited amount of
// memory.
//
// To make a deployer record its reconciles, set deployerlib.DeployerArgs.History to a Store. A program that uses
// deployermain does this, and serves the Store at --history-bind-address. The record of a reconcile contains the
// trigger, the phases of the pipeline with verdict and duration, the hooks with their results, the number of API calls
// by cluster, verb and resource, and the time of the next reconcile. It contains error codes, but neither error
// messages nor the content of objects.
//
//	store := history.NewStore(0)
//	args.History = store
//	handler := history.NewHandler(store, history.Deployer{Name: args.Name}, reviewer)
package history

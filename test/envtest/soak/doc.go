// SPDX-License-Identifier: Apache-2.0

// Package soak lets everything go wrong for a while and then looks whether all is as it was asked for.
//
// Two replicas of one deployer process (mock, manifest and a declarative deployer under one lease) work on a few hundred
// items. Actors play Landscaper and the items' users: they create, update, run, interrupt, abort and delete items, break
// and repair configurations, and edit the target by hand. Meanwhile the leader is killed every few seconds, the API
// server is restarted, etcd is away for some time, and some requests of one replica fail. A watch holds each version of each item to the contract.
//
// When the trouble is over the world must come to rest: each item's last job ended with the phase that its configuration
// deserves, the target holds exactly the objects that are asked for, nothing is written any more, and the stopped
// replicas have left nothing behind in this process.
//
//	go test ./test/envtest/soak -v -soak.duration=3m -soak.items=300 -soak.seed=42
//
// The seed decides what each actor does to which item, and when what goes wrong. -soak.logs names a directory for the
// logs of the replicas: that is where to look when an item is stuck.
package soak

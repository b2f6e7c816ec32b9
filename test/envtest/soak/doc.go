// SPDX-License-Identifier: Apache-2.0

// Package soak injects all kinds of faults for a while and then checks that everything is as requested.
//
// Two replicas of one deployer process (mock, manifest and a declarative deployer under one lease) process a few
// hundred items. Actors play Landscaper and the users of the items: they create, update, run, interrupt, abort and
// delete items, break and repair configurations, and edit the target by hand. Meanwhile the leader is killed every few
// seconds, the API server is restarted, etcd is stopped for some time, and some requests of one replica fail. A watch
// checks each version of each item against the contract.
//
// After the faults everything must settle: each item's last job has ended with the phase that its configuration
// requires, the target contains exactly the requested objects, nothing is written any more, and the stopped replicas
// have left nothing behind in this process.
//
//	go test ./test/envtest/soak -v -soak.duration=3m -soak.items=300 -soak.seed=42
//
// The seed decides what each actor does to which item, and when which fault occurs. -soak.logs names a directory for
// the logs of the replicas, which explain why an item is stuck.
package soak

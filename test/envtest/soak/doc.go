// SPDX-License-Identifier: Apache-2.0

// Package soak injects all kinds of faults for a while and then checks that the result is correct.
//
// Two replicas of one deployer process (mock, manifest, a declarative and a state-graph deployer under one lease)
// process a few hundred items. Actors simulate Landscaper and the users of the items: they create, update, run,
// interrupt, abort and delete items, break and repair configurations, and edit objects in the target. Meanwhile, the
// leader is killed every few seconds, the API server is restarted, etcd is stopped for some time, and some requests of
// one replica fail. A watch checks each version of each item against the contract.
//
// After the faults, the system must settle: the last job of each item has ended with the phase that the configuration
// requires, the target contains exactly the desired objects, nothing is written any more, and the stopped replicas
// have leaked neither goroutines nor memory in this process.
//
//	go test ./test/envtest/soak -v -soak.duration=3m -soak.items=300 -soak.seed=42
//
// The seed determines what each actor does to which item, and when which faults occur. -soak.logs specifies a
// directory for the logs of the replicas, which explain why an item is stuck.
package soak

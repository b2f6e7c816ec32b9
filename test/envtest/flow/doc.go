// SPDX-License-Identifier: Apache-2.0

// Package flow tests the whole life of a deploy item. The specs run a real manager with a deployer against a real API
// server, under both revisions of the deployer contract. They simulate Landscaper and check the objects in the cluster.
//
// Each spec runs once per revision. Each revision has its own control plane. On the control plane of the annotation
// revision, the resource definitions are those of an old Landscaper and lack the newer fields. A recorder watches all
// items of a spec. When the spec ends, every stored version of every item is checked against the rules in
// history_test.go.
package flow

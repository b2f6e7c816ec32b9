// SPDX-License-Identifier: Apache-2.0

// Package flow has the specs of the whole flow: a real manager with a deployer, with a real API server, under both
// revisions of the deployer contract. The specs play Landscaper and check the content of the cluster.
//
// Every spec runs once per revision, each revision on a control plane of its own. The annotation revision gets resource
// definitions without the newer fields, as an old Landscaper installs them. A recorder watches all items of a spec.
// When the spec ends, every version that was ever stored is checked against the rules in history_test.go.
package flow

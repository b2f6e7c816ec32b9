// SPDX-License-Identifier: Apache-2.0

// Package flow holds the specs of the whole flow: a real manager with a
// deployer in it, on a real API server, under both revisions of the deployer
// contract. The specs play Landscaper and look at what the cluster then holds.
//
// Every spec runs once per revision, each revision on a control plane of its
// own. The annotation revision gets resource definitions without the newer
// fields, as an old Landscaper installs them. A recorder watches all items of a
// spec from their creation on; when the spec is over, every version that was
// ever stored is held to the rules in history_test.go.
package flow

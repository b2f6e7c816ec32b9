// SPDX-License-Identifier: Apache-2.0

// Package ui serves a web page that shows the Installations, Executions and deploy items of a Landscaper cluster: a tree
// that follows the cluster, and for each deploy item what `deployerkit explain`, `tree` and `plan` know about it.
//
// The page is read-only. The server reads with the credentials of its caller, its HTTP transport rejects all requests
// that would change a cluster (see [NewReadOnly]), and it only answers requests that a user of the listener's own
// address has made (see the type access).
package ui

// SPDX-License-Identifier: Apache-2.0

// Package deployitems provides deploy items for the mock deployer, each of which shows one possible state of a deploy
// item, and one for the manifest deployer. `make demo` deploys all of them. On a cluster with Landscaper's definitions
// and the two deployers, `kubectl apply -f examples/deploy-items` does the same (logging needs a Target "workload").
package deployitems

import "embed"

// Files are the manifests. Their names sort in the order in which they are to be applied.
//
//go:embed *.yaml
var Files embed.FS

// SPDX-License-Identifier: Apache-2.0

// Package deployitems has deploy items for the mock deployer, each of which
// shows one thing that can happen to a deploy item, and one for the manifest
// deployer. `make demo` deploys all of them; with a cluster of your own that has
// Landscaper's definitions and the two deployers, `kubectl apply -f examples/deploy-items`
// does, too (logging needs a Target "workload").
package deployitems

import "embed"

// Files are the manifests. Their names sort in the order in which they are to be applied.
//
//go:embed *.yaml
var Files embed.FS

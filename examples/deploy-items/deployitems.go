// SPDX-License-Identifier: Apache-2.0

// Package deployitems provides several deploy items for the mock deployer and one deploy item for the manifest
// deployer. Each item for the mock deployer demonstrates a different state of a deploy item. `make demo` deploys all
// items. `kubectl apply -f examples/deploy-items` deploys the items to a cluster with Landscaper's definitions and both
// deployers. The item "logging" requires a Target with the name "workload".
package deployitems

import "embed"

// Files contains the manifests. Apply them in the order of their names.
//
//go:embed *.yaml
var Files embed.FS

// SPDX-License-Identifier: Apache-2.0

// Package installations provides two Installations with inline blueprints. The Installation "database" exports the name
// of a host, and the Installation "app" imports this name. `make demo-landscaper` installs them under the real
// Landscaper, changes them, and deletes them.
//
// The Installations can also be applied to a cluster that runs Landscaper, the mock deployer and the manifest deployer.
// They require a namespace "demo" and, in this namespace, a Target "workload" of type
// landscaper.gardener.cloud/kubernetes-cluster:
//
//	kubectl apply -f examples/landscaper
package installations

import "embed"

// Files contains the manifests of the Installations.
//
//go:embed *.yaml
var Files embed.FS

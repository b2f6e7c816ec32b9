// SPDX-License-Identifier: Apache-2.0

// Package installations provides two Installations with inline blueprints: database exports a host, and app imports it.
// `make demo-landscaper` installs them under the real Landscaper, changes them, and deletes them.
//
// They also work on a cluster that runs Landscaper and the mock and manifest deployers. They need a namespace "demo"
// with a Target "workload" of type landscaper.gardener.cloud/kubernetes-cluster:
//
//	kubectl apply -f examples/landscaper
package installations

import "embed"

// Files has the manifests of the Installations.
//
//go:embed *.yaml
var Files embed.FS

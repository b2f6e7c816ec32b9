// SPDX-License-Identifier: Apache-2.0

// Package gettingstarted provides the files of docs/getting-started.md: an Installation that creates a password with
// the deployer of examples/readme-deployer and exports it, and one that imports it.
package gettingstarted

import "embed"

// Files has the manifests.
//
//go:embed *.yaml
var Files embed.FS

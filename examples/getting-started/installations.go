// SPDX-License-Identifier: Apache-2.0

// Package gettingstarted provides the files of docs/getting-started.md. One Installation creates a password with the
// deployer of examples/readme-deployer, and exports the password. Another Installation imports the password.
package gettingstarted

import "embed"

// Files contains the manifests.
//
//go:embed *.yaml
var Files embed.FS

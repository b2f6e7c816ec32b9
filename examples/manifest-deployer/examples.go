// SPDX-License-Identifier: Apache-2.0

// Package manifestdeployer provides deploy items for the manifest deployer: the examples of docs/manifest-deployer.md,
// each of which a test deploys. They are in the namespace demo, and refer to a Target "cluster" there.
package manifestdeployer

import "embed"

// Files has the files with the deploy items.
//
//go:embed *.yaml
var Files embed.FS

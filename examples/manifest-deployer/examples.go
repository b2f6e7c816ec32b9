// SPDX-License-Identifier: Apache-2.0

// Package manifestdeployer provides the deploy items that docs/manifest-deployer.md shows. A test deploys each item.
// The items are in the namespace "demo" and refer to the Target "cluster" in that namespace.
package manifestdeployer

import "embed"

// Files contains the files of the deploy items.
//
//go:embed *.yaml
var Files embed.FS

// SPDX-License-Identifier: Apache-2.0

// Package examples provides the deploy items that docs/declarative.md shows. Each subdirectory contains an example
// deployer and its items. The items are in the namespace "demo" and refer to the Target "cluster" in that namespace.
package examples

import "embed"

// Items contains the files of the deploy items.
//
//go:embed */*.yaml
var Items embed.FS

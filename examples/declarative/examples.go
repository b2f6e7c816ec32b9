// SPDX-License-Identifier: Apache-2.0

// Package examples provides the deploy items of the declarative example deployers, which are the packages beside this
// one: see docs/declarative.md. The items are in the namespace demo, and refer to a Target "cluster" there.
package examples

import "embed"

// Items has the deploy items, each beside its deployer.
//
//go:embed */*.yaml
var Items embed.FS

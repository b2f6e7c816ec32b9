// SPDX-License-Identifier: Apache-2.0

// Package examples has the deploy items of the declarative example deployers, which are the packages beside this one:
// see docs/declarative.md. The items lie in the namespace demo, and go to the cluster of a Target "cluster" there.
package examples

import "embed"

// Items are the deploy items, each beside its deployer.
//
//go:embed */*.yaml
var Items embed.FS

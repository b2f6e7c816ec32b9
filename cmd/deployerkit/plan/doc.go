// SPDX-License-Identifier: Apache-2.0

// Package plan implements the command `plan`. It is a command of `deployerkit`, and your own deployer can have it, too.
// The command shows the objects that a deployer would create, change and delete for a deploy item. It changes nothing.
// See docs/plan.md.
//
//	root.AddCommand(plan.Command()) // for the manifest deployer
//	if errors.Is(root.Execute(), plan.ErrToDo) { … }
//
//	deployermain.Run(plan.With(program)) // for your own deployer
package plan

// SPDX-License-Identifier: Apache-2.0

// Package plan implements `deployerkit plan`. It shows what a reconcile of a deploy item by the manifest deployer would
// create, change and delete, without doing it. See docs/plan.md.
//
//	root.AddCommand(plan.Command())
//	if errors.Is(root.Execute(), plan.ErrToDo) { … }
package plan

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/deployerkit/deployerkit/extension"
)

// table returns the hook points as markdown: one table with where they run and what results do, one with errors and
// cautions.
func table() string {
	var b strings.Builder
	row(&b, "Hook type", "Phase", "When", "Item", "Target", "Merge of abort", "`AbortReconcile: true`", "Not nil, `AbortReconcile: false`")
	row(&b, "---", "---", "---", "---", "---", "---", "---", "---")
	for _, p := range extension.Points() {
		row(&b, code(p.Type), p.Phase, p.When, p.Item, p.Target, string(p.Merge), p.OnAbort, p.OnContinue)
	}
	b.WriteString("\n")
	row(&b, "Hook type", "An error", "Note")
	row(&b, "---", "---", "---")
	for _, p := range extension.Points() {
		row(&b, code(p.Type), p.OnError, p.Caution)
	}
	return b.String()
}

func code(t extension.HookType) string { return "`" + string(t) + "`" }

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/deployerkit/deployerkit/extension"
)

// formatTable returns the hook points as two Markdown tables. The first table shows when each point runs and the effect
// of its results. The second table shows the effect of an error and the cautions.
func formatTable() string {
	var b strings.Builder
	formatRow(&b, "Hook type", "Phase", "When", "Item", "Target", "Merge of `AbortReconcile`", "Effect of `AbortReconcile: true`", "Effect of a result that is not nil, with `AbortReconcile: false`")
	formatRow(&b, "---", "---", "---", "---", "---", "---", "---", "---")
	for _, p := range extension.AllHookPoints() {
		formatRow(&b, formatCode(p.Type), p.Phase, p.When, p.Item, p.Target, string(p.Merge), p.OnAbort, p.OnContinue)
	}
	b.WriteString("\n")
	formatRow(&b, "Hook type", "Effect of an error", "Note")
	formatRow(&b, "---", "---", "---")
	for _, p := range extension.AllHookPoints() {
		formatRow(&b, formatCode(p.Type), p.OnError, p.Caution)
	}
	return b.String()
}

func formatCode(t extension.HookType) string { return "`" + string(t) + "`" }

func formatRow(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

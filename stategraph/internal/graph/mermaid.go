// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"strings"
)

// ToMermaid draws a graph for Markdown. An arrow leads from a node to each node that requires it.
func ToMermaid(names []string, requires [][]int) string {
	var out strings.Builder
	out.WriteString("flowchart TD\n")
	for node, name := range names {
		fmt.Fprintf(&out, "  n%d[\"%s\"]\n", node, mermaidText.Replace(name))
	}
	for node := range requires {
		for _, required := range requires[node] {
			fmt.Fprintf(&out, "  n%d --> n%d\n", required, node)
		}
	}
	return out.String()
}

// mermaidText escapes names for Mermaid. Valid component names need no escaping, but the function Mermaid accepts any
// names.
var mermaidText = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ")

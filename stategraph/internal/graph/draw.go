// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"strings"
)

// Mermaid draws a graph for Markdown. An arrow leads from a node to those that require it.
func Mermaid(names []string, requires [][]int) string {
	var out strings.Builder
	out.WriteString("flowchart TD\n")
	for node, name := range names {
		fmt.Fprintf(&out, "  n%d[\"%s\"]\n", node, mermaidText.Replace(name))
	}
	arrows(requires, func(from, to int) { fmt.Fprintf(&out, "  n%d --> n%d\n", from, to) })
	return out.String()
}

// DOT draws a graph for Graphviz. An arrow leads from a node to those that require it.
func DOT(names []string, requires [][]int) string {
	var out strings.Builder
	out.WriteString("digraph {\n  node [shape=box]\n")
	for _, name := range names {
		fmt.Fprintf(&out, "  %s\n", dotText(name))
	}
	arrows(requires, func(from, to int) { fmt.Fprintf(&out, "  %s -> %s\n", dotText(names[from]), dotText(names[to])) })
	out.WriteString("}\n")
	return out.String()
}

// arrows calls draw for each requirement.
func arrows(requires [][]int, draw func(from, to int)) {
	for node := range requires {
		for _, required := range requires[node] {
			draw(required, node)
		}
	}
}

// Names of components need no escaping today, but the drawing should not depend on it.
var (
	mermaidText = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ")
	dotEscapes  = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
)

func dotText(text string) string { return `"` + dotEscapes.Replace(text) + `"` }

// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"strings"
)

// Mermaid draws the graph for Markdown: an arrow leads from a component to those that require it. The same graph always
// gives the same text.
func (g *Graph) Mermaid() string {
	var out strings.Builder
	out.WriteString("flowchart TD\n")
	for place, node := range g.nodes {
		fmt.Fprintf(&out, "  n%d[\"%s\"]\n", place, mermaidText.Replace(node.component))
	}
	g.arrows(func(from, to int) { fmt.Fprintf(&out, "  n%d --> n%d\n", from, to) })
	return out.String()
}

// DOT draws the graph for Graphviz: an arrow leads from a component to those that require it. The same graph always gives
// the same text.
func (g *Graph) DOT() string {
	var out strings.Builder
	out.WriteString("digraph {\n  node [shape=box]\n")
	for _, node := range g.nodes {
		fmt.Fprintf(&out, "  %s\n", dotText(node.component))
	}
	g.arrows(func(from, to int) {
		fmt.Fprintf(&out, "  %s -> %s\n", dotText(g.nodes[from].component), dotText(g.nodes[to].component))
	})
	out.WriteString("}\n")
	return out.String()
}

// arrows calls draw for each requirement.
func (g *Graph) arrows(draw func(from, to int)) {
	for place, node := range g.nodes {
		for _, required := range node.requires {
			draw(required, place)
		}
	}
}

// Names of components need no escaping today; what is drawn should not depend on it.
var (
	mermaidText = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ")
	dotEscapes  = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
)

func dotText(text string) string { return `"` + dotEscapes.Replace(text) + `"` }

// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// OnlyFailed removes the branches that contain no failed object.
func (t *Tree) OnlyFailed() { t.Roots = onlyFailed(t.Roots) }

func onlyFailed(nodes []*TreeNode) []*TreeNode {
	var out []*TreeNode
	for _, n := range nodes {
		if n.Children = onlyFailed(n.Children); n.Failed || len(n.Children) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// Text formats the tree for users. A line has at most [Width] characters. Longer lines are cut and end with an
// ellipsis.
func (t *Tree) Text(style Style) string {
	p := &page{style: style, now: t.Time.Time}
	if len(t.Roots) == 0 {
		p.title("nothing to show")
	}
	for _, n := range t.Roots {
		p.branch(n, "", "", t.Time.Time)
	}
	if t.Omitted > 0 {
		p.title(fmt.Sprintf("%d more objects are not shown", t.Omitted))
	}
	for i, u := range t.Unknown {
		p.painted(first(i, "Unknown"), u.Part+": "+u.Why, yellow)
	}
	return p.b.String()
}

// branch writes a line for the node and lines for its children. The line for the node begins with `head`. The lines for
// the children begin with `below`.
func (p *page) branch(n *TreeNode, head, below string, now time.Time) {
	text := n.Kind + " " + n.Name
	var facts []string
	for _, fact := range []string{n.Phase, n.ageOf(now), n.Message} {
		if fact != "" {
			facts = append(facts, fact)
		}
	}
	if len(facts) > 0 {
		text += ": " + strings.Join(facts, ", ")
	}
	color := ""
	if n.Failed {
		color = red
	}
	p.b.WriteString(head + p.paint(color, cut(text, Width-utf8.RuneCountInString(head))) + "\n")
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			p.branch(child, below+"└─ ", below+"   ", now)
			continue
		}
		p.branch(child, below+"├─ ", below+"│  ", now)
	}
}

// cut shortens a text to at most width characters.
func cut(text string, width int) string {
	width = max(width, 10)
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

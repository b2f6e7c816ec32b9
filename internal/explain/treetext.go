// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// FilterFailed removes the branches that contain no failed object.
func (t *Tree) FilterFailed() { t.Roots = filterFailed(t.Roots) }

func filterFailed(nodes []*TreeNode) []*TreeNode {
	var out []*TreeNode
	for _, n := range nodes {
		if n.Children = filterFailed(n.Children); n.Failed || len(n.Children) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// Format formats the tree for users. A line has at most [MaxLineWidth] characters. Longer lines are cut and end with an
// ellipsis.
func (t *Tree) Format(style Style) string {
	p := &limitItems{style: style, now: t.Time.Time}
	if len(t.Roots) == 0 {
		p.writeTitle("nothing to show")
	}
	for _, n := range t.Roots {
		p.writeBranch(n, "", "", t.Time.Time)
	}
	if t.Omitted > 0 {
		p.writeTitle(fmt.Sprintf("%d more objects are not shown", t.Omitted))
	}
	for i, u := range t.Unknown {
		p.writeColored(labelIfFirst(i, "Unknown"), u.Part+": "+u.Why, yellow)
	}
	return p.b.String()
}

// writeBranch writes a line for the node and lines for its children. The line for the node begins with `head`. The
// lines for the children begin with `below`.
func (p *limitItems) writeBranch(n *TreeNode, head, below string, now time.Time) {
	text := n.Kind + " " + n.Name
	var facts []string
	for _, fact := range []string{n.Phase, n.getAge(now), n.Message} {
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
	p.b.WriteString(head + p.addColor(color, trimToWidth(text, MaxLineWidth-utf8.RuneCountInString(head))) + "\n")
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			p.writeBranch(child, below+"└─ ", below+"   ", now)
			continue
		}
		p.writeBranch(child, below+"├─ ", below+"│  ", now)
	}
}

// trimToWidth shortens a text to at most width characters.
func trimToWidth(text string, width int) string {
	width = max(width, 10)
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

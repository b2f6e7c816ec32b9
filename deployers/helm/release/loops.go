// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// instrument returns a copy of the chart in which each loop calls the function tickName. If a template cannot be
// parsed, it stays unchanged, so that the engine reports the error.
func (l *limiter) instrument(c *chartv2.Chart) (*chartv2.Chart, error) {
	if err := l.count(0); err != nil {
		return nil, err
	}
	out := *c
	out.Templates = make([]*common.File, len(c.Templates))
	for i, file := range c.Templates {
		out.Templates[i] = &common.File{Name: file.Name, ModTime: file.ModTime, Data: instrumentLoops(file.Data)}
	}
	subcharts := make([]*chartv2.Chart, 0, len(c.Dependencies()))
	for _, sub := range c.Dependencies() {
		instrumented, err := l.instrument(sub)
		if err != nil {
			return nil, err
		}
		subcharts = append(subcharts, instrumented)
	}
	out.SetDependencies(subcharts...)
	return &out, nil
}

// instrumentLoops inserts a call of the function tickName at the beginning of the body of each loop. It adds no line.
func instrumentLoops(text []byte) []byte {
	if !strings.Contains(string(text), "range") {
		return text
	}
	tree := parse.New("template")
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(string(text), "", "", trees); err != nil {
		return text
	}
	inserts := map[int]int{} // size of the body by its offset
	for _, one := range trees {
		if one.Root != nil {
			findLoops(one.Root, text, inserts)
		}
	}
	var out strings.Builder
	for i := range len(text) + 1 {
		if size, found := inserts[i]; found {
			trim := ""
			if i >= 3 && text[i-3] == '-' {
				trim = " -"
			}
			_, _ = fmt.Fprintf(&out, "{{%s %d%s}}", tickName, size, trim)
		}
		if i < len(text) {
			out.WriteByte(text[i])
		}
	}
	return []byte(out.String())
}

// minIteration is the estimated size of an iteration that writes little, because an iteration also costs time.
const minIteration = 32

// findLoops adds the offsets of the bodies of all loops below a node.
func findLoops(node parse.Node, text []byte, inserts map[int]int) {
	var branch *parse.BranchNode
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			findLoops(child, text, inserts)
		}
		return
	case *parse.IfNode:
		branch = &n.BranchNode
	case *parse.WithNode:
		branch = &n.BranchNode
	case *parse.RangeNode:
		branch = &n.BranchNode
		if end := endOfAction(text, int(n.Pipe.Position())); end > 0 {
			inserts[end] = max(len(n.List.String()), minIteration)
		}
	default:
		return
	}
	findLoops(branch.List, text, inserts)
	findLoops(branch.ElseList, text, inserts)
}

// endOfAction returns the offset after the action that contains the given offset, or 0 if it does not end.
func endOfAction(text []byte, from int) int {
	for i := from; i+1 < len(text); i++ {
		switch text[i] {
		case '"', '`', '\'':
			quote := text[i]
			for i++; i < len(text) && text[i] != quote; i++ {
				if text[i] == '\\' && quote != '`' {
					i++
				}
			}
		case '}':
			if text[i+1] == '}' {
				return i + 2
			}
		}
	}
	return 0
}

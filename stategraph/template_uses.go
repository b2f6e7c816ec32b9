// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"cmp"
	"fmt"
	"slices"
	"text/template"
	"text/template/parse"
)

// undefined finds a named template that is used and defined nowhere. text/template itself only notices when it gets there,
// which may be in the run of a single item.
func undefined(parsed *template.Template) error {
	all := parsed.Templates()
	slices.SortFunc(all, func(a, b *template.Template) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, t := range all {
		if t.Tree == nil {
			continue
		}
		for _, use := range uses(nil, t.Root) {
			if parsed.Lookup(use.Name) == nil {
				location, _ := t.ErrorContext(use)
				return fmt.Errorf("template: %s: %q is not defined (go:embed leaves out files whose names begin with %q, unless it is told all:%s)",
					location, use.Name, "_", TemplateDir)
			}
		}
	}
	return nil
}

// uses are the places in a list, and in the lists within it, where named templates are used.
func uses(found []*parse.TemplateNode, in *parse.ListNode) []*parse.TemplateNode {
	if in == nil {
		return found
	}
	for _, node := range in.Nodes {
		switch n := node.(type) {
		case *parse.TemplateNode:
			found = append(found, n)
		case *parse.IfNode:
			found = uses(uses(found, n.List), n.ElseList)
		case *parse.RangeNode:
			found = uses(uses(found, n.List), n.ElseList)
		case *parse.WithNode:
			found = uses(uses(found, n.List), n.ElseList)
		}
	}
	return found
}

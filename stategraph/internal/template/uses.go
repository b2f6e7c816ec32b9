// SPDX-License-Identifier: Apache-2.0

package template

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	texttemplate "text/template"
	"text/template/parse"
)

// Use describes one place in which a template uses a component.
type Use struct {
	Component string
	Output    string // the name of the output; "" if the template uses the object or its name
	Where     string // the location in the template; errors begin with it
	Guarded   bool   // the template handles the case that the component has no object
}

// scanner finds the components that a template uses. It also finds calls of named templates that are not defined.
type scanner struct {
	parsed *texttemplate.Template
	tree   *parse.Tree // the tree that contains the current node
	seen   map[string]bool
	uses   []Use
	faults []string
}

// scan scans a template and all templates that it calls.
func scan(parsed *texttemplate.Template) *scanner {
	s := &scanner{parsed: parsed, seen: map[string]bool{}}
	all := parsed.Templates()
	slices.SortFunc(all, func(a, b *texttemplate.Template) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, t := range all {
		s.checkDefined(t)
	}
	s.scanTemplate(parsed, nil)
	return s
}

// checkDefined records calls of named templates that are not defined. Otherwise, text/template would report such a call
// only when it executes the call.
func (s *scanner) checkDefined(t *texttemplate.Template) {
	if t.Tree == nil {
		return
	}
	for _, call := range findCalls(nil, t.Root) {
		if s.parsed.Lookup(call.Name) == nil {
			location, _ := t.ErrorContext(call)
			s.faults = append(s.faults, fmt.Sprintf("template: %s: %q is not defined (without the prefix all:, go:embed omits files whose names begin with %q; use all:%s)",
				location, call.Name, "_", Dir))
		}
	}
}

// findCalls appends the calls of named templates in a list, including nested lists, to `found` and returns the result.
func findCalls(found []*parse.TemplateNode, in *parse.ListNode) []*parse.TemplateNode {
	if in == nil {
		return found
	}
	for _, node := range in.Nodes {
		if call, ok := node.(*parse.TemplateNode); ok {
			found = append(found, call)
		}
		if branch := getBranch(node); branch != nil {
			found = findCalls(findCalls(found, branch.List), branch.ElseList)
		}
	}
	return found
}

// getBranch returns the common part of an "if", "range" or "with" node, or nil for other nodes.
func getBranch(node parse.Node) *parse.BranchNode {
	switch n := node.(type) {
	case *parse.IfNode:
		return &n.BranchNode
	case *parse.RangeNode:
		return &n.BranchNode
	case *parse.WithNode:
		return &n.BranchNode
	}
	return nil
}

// scanTemplate scans a template, unless it was scanned before. The calling template has already checked that the
// components in guards have objects.
func (s *scanner) scanTemplate(t *texttemplate.Template, guards []string) {
	if t == nil || t.Tree == nil || s.seen[t.Name()] {
		return
	}
	s.seen[t.Name()] = true
	before := s.tree
	s.tree = t.Tree
	s.scanList(t.Root, guards)
	s.tree = before
}

func (s *scanner) scanList(in *parse.ListNode, guards []string) {
	if in == nil {
		return
	}
	for _, node := range in.Nodes {
		if branch := getBranch(node); branch != nil {
			within := slices.Concat(guards, s.scanPipe(branch.Pipe, guards, true))
			s.scanList(branch.List, within)
			s.scanList(branch.ElseList, guards)
			continue
		}
		switch n := node.(type) {
		case *parse.ActionNode:
			s.scanPipe(n.Pipe, guards, false)
		case *parse.TemplateNode:
			s.scanPipe(n.Pipe, guards, false)
			s.scanTemplate(s.parsed.Lookup(n.Name), guards)
		}
	}
}

// fallbacks contains the functions that accept an empty argument, such as the output of a component without an object.
var fallbacks = map[string]bool{"default": true, "coalesce": true, "empty": true, "ternary": true, "and": true, "or": true, "not": true}

// scanPipe records the components that a pipeline uses, and returns their names.
func (s *scanner) scanPipe(in *parse.PipeNode, guards []string, guarded bool) (names []string) {
	if in == nil {
		return nil
	}
	guarded = guarded || slices.ContainsFunc(in.Cmds, func(command *parse.CommandNode) bool {
		function, ok := command.Args[0].(*parse.IdentifierNode)
		return ok && fallbacks[function.Ident]
	})
	for i, command := range in.Cmds {
		args := command.Args
		if i > 0 && len(in.Cmds[i-1].Args) == 1 {
			args = append(slices.Clone(args), in.Cmds[i-1].Args[0]) // "name" | .NameOf
		}
		if name, found := s.recordUse(args, guards, guarded); found {
			names = append(names, name)
		}
		for _, arg := range command.Args {
			names = append(names, s.scanPipe(getPipe(arg), guards, guarded)...)
		}
	}
	return names
}

// getPipe returns the pipeline inside an argument such as (.Output "a") or (.Output "a").spec. It returns nil for an
// argument without parentheses.
func getPipe(arg parse.Node) *parse.PipeNode {
	if chain, ok := arg.(*parse.ChainNode); ok {
		arg = chain.Node
	}
	inner, _ := arg.(*parse.PipeNode)
	return inner
}

// recordUse records a call of NameOf, Output or Value if the name of the component is a constant.
func (s *scanner) recordUse(args []parse.Node, guards []string, guarded bool) (component string, found bool) {
	method := getMethod(args[0])
	if method != "NameOf" && method != "Output" && method != "Value" || len(args) < 2 {
		return "", false
	}
	name, constant := args[1].(*parse.StringNode)
	if !constant {
		return "", false
	}
	location, _ := s.tree.ErrorContext(args[0])
	u := Use{Component: name.Text, Where: fmt.Sprintf("template: %s: %s", location, method), Guarded: guarded || slices.Contains(guards, name.Text)}
	if method == "Output" && len(args) > 2 {
		if output, constant := args[2].(*parse.StringNode); constant {
			u.Output = output.Text
		}
	}
	s.uses = append(s.uses, u)
	return name.Text, true
}

// getMethod returns the name of the TemplateData method that a node calls. For .NameOf and $.NameOf, it returns
// "NameOf".
func getMethod(node parse.Node) string {
	switch n := node.(type) {
	case *parse.FieldNode:
		if len(n.Ident) == 1 {
			return n.Ident[0]
		}
	case *parse.VariableNode:
		if len(n.Ident) == 2 && n.Ident[0] == "$" {
			return n.Ident[1]
		}
	}
	return ""
}

// isOptional reports whether the whole text of a template is inside conditions, so that the template may render no
// object.
func isOptional(parsed *texttemplate.Template) bool {
	if parsed.Tree == nil {
		return false
	}
	conditions := false
	for _, node := range parsed.Root.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			if hasContent(string(n.Text)) {
				return false
			}
		case *parse.CommentNode:
		default:
			branch := getBranch(node)
			if branch == nil || branch.ElseList != nil {
				return false
			}
			conditions = true
		}
	}
	return conditions
}

// hasContent reports whether a text contains anything except YAML comments and document separators.
func hasContent(text string) bool {
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "#") && !isSeparator(line) {
			return true
		}
	}
	return false
}

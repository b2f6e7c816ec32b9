// SPDX-License-Identifier: Apache-2.0

package errortable

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sources contains parsed packages and resolves their constants.
type sources struct {
	root     string
	packages map[string]*pkg
	err      error // for the first import that cannot be resolved
}

type pkg struct {
	name      string
	files     []file
	constants map[string]ast.Expr
}

type file struct {
	syntax  *ast.File
	imports map[string]string // import paths by package name
}

// load parses the package in a directory. If the directory contains no Go files, the package is empty.
func (s *sources) load(directory string) (*pkg, error) {
	if p := s.packages[directory]; p != nil {
		return p, nil
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	p := &pkg{constants: map[string]ast.Expr{}}
	s.packages[directory] = p
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(directory, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.name = syntax.Name.Name
		p.files = append(p.files, file{syntax: syntax, imports: readImports(syntax)})
		addConstants(syntax, p.constants)
	}
	return p, nil
}

func readImports(syntax *ast.File) map[string]string {
	out := map[string]string{}
	for _, spec := range syntax.Imports {
		at, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(at)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = at
	}
	return out
}

func addConstants(syntax *ast.File, into map[string]ast.Expr) {
	for _, decl := range syntax.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Values) != len(value.Names) {
				continue
			}
			for i, name := range value.Names {
				into[name.Name] = value.Values[i]
			}
		}
	}
}

// findAssignments returns the expressions that a declaration assigns to its local variables and their
// fields.
func findAssignments(decl ast.Decl) map[string][]ast.Expr {
	out := map[string][]ast.Expr{}
	ast.Inspect(decl, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != len(assign.Rhs) {
			return true
		}
		for i, left := range assign.Lhs {
			name := types.ExprString(left)
			out[name] = append(out[name], assign.Rhs[i])
		}
		return true
	})
	return out
}

// scope resolves the names in expressions: local variables, constants of the package, and imported constants.
type scope struct {
	sources *sources
	pkg     *pkg
	file    file
	locals  map[string][]ast.Expr
}

// qualifyName returns the name of a function, qualified by its package.
func (s *scope) qualifyName(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return s.pkg.name + "." + fun.Name
	case *ast.SelectorExpr:
		if name, ok := fun.X.(*ast.Ident); ok {
			return name.Name + "." + fun.Sel.Name
		}
	}
	return ""
}

// values returns the constants that an expression may evaluate to. It returns none if the expression is
// not constant.
func (s *scope) values(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return nil
		}
		return []string{text}
	case *ast.Ident:
		return s.resolveName(e.Name)
	case *ast.SelectorExpr:
		return s.resolveImported(e)
	case *ast.CompositeLit:
		var out []string
		for _, element := range e.Elts {
			out = append(out, s.values(element)...)
		}
		return out
	case *ast.BinaryExpr: // the name of an action and a suffix
		if right := s.values(e.Y); e.Op == token.ADD && len(right) == 1 && len(s.values(e.X)) == 0 {
			return []string{Action + right[0]}
		}
	}
	return nil
}

// findAppended returns the codes that are appended to the field Codes of the local variable to which the node n is
// assigned.
func (s *scope) findAppended(n ast.Node) []ast.Expr {
	var out []ast.Expr
	for name, values := range s.locals {
		if !slices.ContainsFunc(values, func(e ast.Expr) bool { return e == n }) {
			continue
		}
		for _, e := range s.locals[name+".Codes"] {
			if call, ok := e.(*ast.CallExpr); ok && types.ExprString(call.Fun) == "append" {
				out = append(out, call.Args[1:]...)
			}
		}
	}
	return out
}

func (s *scope) resolveName(name string) []string {
	if local, ok := s.locals[name]; ok {
		var out []string
		delete(s.locals, name) // prevents an endless recursion if a variable is assigned to itself
		for _, e := range local {
			out = append(out, s.values(e)...)
		}
		s.locals[name] = local
		return out
	}
	if constant, ok := s.pkg.constants[name]; ok {
		return s.values(constant)
	}
	return nil
}

// resolveImported returns the value of a constant of another package.
func (s *scope) resolveImported(e *ast.SelectorExpr) []string {
	name, ok := e.X.(*ast.Ident)
	if !ok || s.file.imports[name.Name] == "" {
		return nil
	}
	at, err := build.Default.Import(s.file.imports[name.Name], s.sources.root, build.FindOnly)
	if err == nil {
		var p *pkg
		if p, err = s.sources.load(at.Dir); err == nil {
			return (&scope{sources: s.sources, pkg: p}).resolveName(e.Sel.Name)
		}
	}
	s.sources.err = err
	return nil
}

// verb matches a formatting verb of package fmt.
var verb = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)

// Text stands for a part of a message that is not constant.
const Text = "…"

// formatMessage returns a message in which [Text] replaces each part that is not constant.
func (s *scope) formatMessage(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) > 0 {
		if s.qualifyName(call.Fun) == "fmt.Sprintf" {
			return verb.ReplaceAllString(s.formatMessage(call.Args[0]), Text)
		}
		return s.formatMessage(call.Args[0])
	}
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		return s.formatMessage(sum.X) + s.formatMessage(sum.Y)
	}
	if values := s.values(e); len(values) == 1 {
		return values[0]
	}
	return Text
}

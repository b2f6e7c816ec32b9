// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// repository contains the names that the files of a repository declare.
type repository struct {
	files    *token.FileSet
	packages map[string]*pkg   // by directory
	byName   map[string][]*pkg // by name, without tests and programs
	words    map[string]bool   // the words in string literals, in data files and in the list of exceptions
}

// pkg contains the names in a directory, including those of the external test package.
type pkg struct {
	dir       string
	comments  []*ast.CommentGroup
	names     map[string]bool            // all identifiers in the code
	variables map[string]bool            // parameters, fields and variables
	top       map[string]bool            // the names that are declared at the top level
	members   map[string]map[string]bool // the fields and methods of each type
	embedding map[string]bool            // types that may have further members
}

var word = regexp.MustCompile(`\w+`)

func newRepository(allowed string) *repository {
	r := &repository{token.NewFileSet(), map[string]*pkg{}, map[string][]*pkg{}, map[string]bool{}}
	for line := range strings.Lines(allowed) {
		line, _, _ = strings.Cut(line, "#")
		r.addWords(line)
	}
	return r
}

func (r *repository) listPackages() []*pkg {
	var out []*pkg
	for _, p := range r.packages {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return out
}

func (r *repository) addWords(text string) {
	for _, w := range word.FindAllString(text, -1) {
		r.words[w] = true
	}
}

// addFile reads a Go file or a data file, and ignores all others.
func (r *repository) addFile(root, name string) error {
	text, err := os.ReadFile(filepath.Join(root, name))
	switch {
	case errors.Is(err, fs.ErrNotExist): // the file was deleted but is still in the index
		return nil
	case err != nil:
		return err
	case slices.Contains([]string{".yaml", ".json", ".tmpl"}, filepath.Ext(name)):
		r.addWords(string(text))
		return nil
	case filepath.Ext(name) != ".go":
		return nil
	}
	file, err := parser.ParseFile(r.files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p := r.getPackage(filepath.Dir(name))
	if n := file.Name.Name; n != "main" && !strings.HasSuffix(name, "_test.go") && !slices.Contains(r.byName[n], p) {
		r.byName[n] = append(r.byName[n], p)
	}
	p.comments = append(p.comments, file.Comments...)
	ast.Inspect(file, func(n ast.Node) bool {
		r.addNode(p, n)
		return true
	})
	for _, decl := range file.Decls {
		p.addDecl(decl)
	}
	return nil
}

func (r *repository) getPackage(dir string) *pkg {
	if r.packages[dir] == nil {
		r.packages[dir] = &pkg{dir: dir, names: map[string]bool{}, variables: map[string]bool{}, top: map[string]bool{}, members: map[string]map[string]bool{}, embedding: map[string]bool{}}
	}
	return r.packages[dir]
}

func (r *repository) addNode(p *pkg, n ast.Node) {
	switch n := n.(type) {
	case *ast.Ident:
		p.names[n.Name] = true
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			r.addWords(n.Value)
		}
	case *ast.Field:
		for _, name := range n.Names {
			p.variables[name.Name] = true
		}
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			if name, ok := left.(*ast.Ident); ok {
				p.variables[name.Name] = true
			}
		}
	}
}

func (p *pkg) addDecl(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			p.top[decl.Name.Name] = true
		} else if receiver := getTypeName(decl.Recv.List[0].Type); receiver != "" {
			p.addMember(receiver, decl.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			p.addSpec(spec)
		}
	}
}

// getTypeName returns the name of a type without pointer and type parameters.
func getTypeName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return getTypeName(e.X)
	case *ast.IndexExpr:
		return getTypeName(e.X)
	case *ast.IndexListExpr:
		return getTypeName(e.X)
	}
	return ""
}

func (p *pkg) addSpec(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			p.top[name.Name] = true
		}
	case *ast.TypeSpec:
		p.top[spec.Name.Name] = true
		switch t := spec.Type.(type) {
		case *ast.StructType:
			p.addFields(spec.Name.Name, t.Fields)
		case *ast.InterfaceType:
			p.addFields(spec.Name.Name, t.Methods)
		default: // the type may have the members of another type
			p.embedding[spec.Name.Name] = true
		}
	}
}

func (p *pkg) addFields(typeName string, fields *ast.FieldList) {
	for _, field := range fields.List {
		if len(field.Names) == 0 {
			p.embedding[typeName] = true
		}
		for _, name := range field.Names {
			p.addMember(typeName, name.Name)
		}
	}
}

func (p *pkg) addMember(typeName, member string) {
	if p.members[typeName] == nil {
		p.members[typeName] = map[string]bool{}
	}
	p.members[typeName][member] = true
}

// hasMember reports whether a type may have a field or method. It returns true for types that are not declared here.
func (p *pkg) hasMember(typeName, member string) bool {
	return !p.top[typeName] || p.embedding[typeName] || p.members[typeName] == nil || p.members[typeName][member]
}

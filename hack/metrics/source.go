// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/deployerkit/deployerkit/hack/internal/phrases"
)

// repository contains the data that was read from the files.
type repository struct {
	files    int
	packages map[string]*pkg // the keys are directories
	guides   map[string]int  // number of coined phrases by file
}

// pkg describes the Go files of a directory, without the tests.
type pkg struct {
	files    int
	main     bool
	lines    int // number of lines of code
	phrases  map[string]int
	exported []string
	// functions contains the names of the functions and methods.
	functions []string
	types     map[string]*typeInfo
}

// typeInfo is a declared type.
type typeInfo struct {
	methods  map[string]bool // for an interface, the methods that it requires; otherwise, the methods that the type declares
	fields   int
	embedded []reference
}

// reference identifies a type that another type embeds.
type reference struct{ dir, name string }

// modulePath is the prefix of the import paths of this repository.
const modulePath = "github.com/deployerkit/deployerkit"

// read reads the files of a repository. Paths are relative to root, with slashes.
func read(root string, paths []string) (*repository, error) {
	r := &repository{files: len(paths), packages: map[string]*pkg{}, guides: map[string]int{}}
	for _, p := range paths {
		isCode := strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go") && !strings.Contains(p, "testdata/")
		isGuide := strings.HasSuffix(p, ".md")
		if !isCode && !isGuide {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, p))
		if os.IsNotExist(err) { // the file was deleted but is still in the index
			r.files--
			continue
		}
		if err != nil {
			return nil, err
		}
		if isGuide {
			r.guides[p] = len(phrases.Coined.FindAllString(strings.ReplaceAll(string(text), "\n", " "), -1))
			continue
		}
		if err := r.add(p, text); err != nil {
			return nil, fmt.Errorf("read %s: %w", p, err)
		}
	}
	return r, nil
}

func (r *repository) add(file string, text []byte) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	dir := path.Dir(file)
	p := r.packages[dir]
	if p == nil {
		p = &pkg{phrases: map[string]int{}, types: map[string]*typeInfo{}}
		r.packages[dir] = p
	}
	p.files++
	p.main = f.Name.Name == "main"
	p.lines += numCodeLines(fset, text)
	for _, group := range f.Comments {
		var words []string
		for _, c := range group.List {
			words = append(words, strings.TrimPrefix(c.Text, "//")) // unlike Text(), the comment text includes directives
		}
		p.phrases[file] += len(phrases.Coined.FindAllString(strings.Join(words, ""), -1))
	}
	imports := readImports(f)
	for _, decl := range f.Decls {
		p.addDeclaration(decl, dir, imports)
	}
	return nil
}

// numCodeLines returns the number of lines that contain a token other than a comment.
func numCodeLines(fset *token.FileSet, text []byte) int {
	var s scanner.Scanner
	file := fset.AddFile("", fset.Base(), len(text))
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		line, n := file.Line(pos), 1
		if tok == token.STRING {
			n += bytes.Count([]byte(lit), []byte("\n"))
		}
		for i := range n {
			lines[line+i] = true
		}
	}
}

// readImports returns the directories of this repository that a file imports. The keys are the package names.
func readImports(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, spec := range f.Imports {
		at, err := strconv.Unquote(spec.Path.Value)
		dir, ours := strings.CutPrefix(at, modulePath+"/")
		if err != nil || !ours {
			continue
		}
		name := path.Base(dir)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = dir
	}
	return out
}

func (p *pkg) addDeclaration(decl ast.Decl, dir string, imports map[string]string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		p.functions = append(p.functions, d.Name.Name)
		if d.Recv == nil {
			p.addExported(d.Name)
			return
		}
		if name := baseName(d.Recv.List[0].Type); name != "" {
			p.getOrAddType(name).methods[d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				p.addExported(s.Names...)
			case *ast.TypeSpec:
				p.addExported(s.Name)
				p.getOrAddType(s.Name.Name).addExpression(s.Type, dir, imports)
			}
		}
	}
}

func (p *pkg) addExported(names ...*ast.Ident) {
	for _, n := range names {
		if n.IsExported() {
			p.exported = append(p.exported, n.Name)
		}
	}
}

func (p *pkg) getOrAddType(name string) *typeInfo {
	if p.types[name] == nil {
		p.types[name] = &typeInfo{methods: map[string]bool{}}
	}
	return p.types[name]
}

// addExpression adds the fields, methods and embedded types of a type expression.
func (t *typeInfo) addExpression(expr ast.Expr, dir string, imports map[string]string) {
	switch e := expr.(type) {
	case *ast.StructType:
		for _, field := range e.Fields.List {
			t.fields += max(1, len(field.Names))
			if len(field.Names) == 0 {
				t.addEmbedded(field.Type, dir, imports)
			}
		}
	case *ast.InterfaceType:
		for _, method := range e.Methods.List {
			for _, name := range method.Names {
				t.methods[name.Name] = true
			}
			if len(method.Names) == 0 {
				t.addEmbedded(method.Type, dir, imports)
			}
		}
	}
}

func (t *typeInfo) addEmbedded(expr ast.Expr, dir string, imports map[string]string) {
	switch e := expr.(type) {
	case *ast.StarExpr:
		t.addEmbedded(e.X, dir, imports)
	case *ast.IndexExpr:
		t.addEmbedded(e.X, dir, imports)
	case *ast.Ident:
		t.embedded = append(t.embedded, reference{dir, e.Name})
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok && imports[of.Name] != "" {
			t.embedded = append(t.embedded, reference{imports[of.Name], e.Sel.Name})
		}
	}
}

// baseName returns the name of the type in a receiver.
func baseName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

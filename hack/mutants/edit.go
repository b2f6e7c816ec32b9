// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// edit replaces lines in a declaration. It does not depend on the file or the line of the declaration, so it still
// applies after the declaration has moved within its package.
type edit struct {
	dir         string // directory of the package, relative to the root
	declaration string // F for a function, a value or a type, T.M for a method, a keyword for a group such as the imports
	// lines contains the lines of the change. The first byte of a line is '-' for a line that is removed, '+' for a line
	// that is added, and ' ' for a line that remains.
	lines []string
}

// header begins a line with the directory and the declaration of an edit.
const header = "@@ "

// parseEdits parses the edits of a mutant.
func parseEdits(text string) ([]edit, error) {
	var out []edit
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if place, found := strings.CutPrefix(line, header); found {
			dir, declaration, ok := strings.Cut(place, " ")
			if !ok {
				return nil, fmt.Errorf("%q does not contain a directory and a declaration", line)
			}
			out = append(out, edit{dir: dir, declaration: declaration})
			continue
		}
		if len(out) == 0 || line == "" || !strings.ContainsRune("-+ ", rune(line[0])) {
			return nil, fmt.Errorf("the line %q does not belong to an edit", line)
		}
		last := &out[len(out)-1]
		last.lines = append(last.lines, line)
	}
	return out, nil
}

// String formats an edit as parseEdits expects it.
func (e edit) String() string {
	return header + e.dir + " " + e.declaration + "\n" + strings.Join(e.lines, "\n") + "\n"
}

// getLines returns the lines that exist before the edit, or, if added is true, those that exist after it.
func (e edit) getLines(added bool) []string {
	skip := byte('+')
	if added {
		skip = '-'
	}
	var out []string
	for _, line := range e.lines {
		if line[0] != skip {
			out = append(out, line[1:])
		}
	}
	return out
}

// location is a place in a file, as the number of a line, counted from 0.
type location struct {
	file string
	line int
}

// findLocation returns the only place in the declarations with the name of the edit that contains its lines. It returns
// an error if there is no such place, or more than one. White space at the beginning and the end of a line is ignored.
func (e edit) findLocation(files map[string][]byte) (location, error) {
	old := e.getLines(false)
	if len(old) == 0 {
		return location{}, errors.New("the edit names no line of the code")
	}
	var places []location
	for file, data := range files {
		if path.Dir(file) != e.dir {
			continue
		}
		lines, err := e.find(data, old)
		if err != nil {
			return location{}, fmt.Errorf("%s: %w", file, err)
		}
		for _, line := range lines {
			places = append(places, location{file, line})
		}
	}
	if len(places) != 1 {
		return location{}, fmt.Errorf("%s %s contains the lines of the edit %d times, want once", e.dir, e.declaration, len(places))
	}
	return places[0], nil
}

// find returns where the declarations with the name of the edit contain the lines `old`.
func (e edit) find(source []byte, old []string) ([]int, error) {
	found, err := parseDeclarations(source)
	if err != nil {
		return nil, err
	}
	var at []int
	lines := strings.Split(string(source), "\n")
	for _, d := range found {
		for i := d.first; d.name == e.declaration && i+len(old)-1 <= d.last; i++ {
			if slices.EqualFunc(lines[i:i+len(old)], old, equalCode) {
				at = append(at, i)
			}
		}
	}
	return at, nil
}

// replace returns the content of a file after the edit.
func (e edit) replace(data []byte, at location) []byte {
	lines := strings.Split(string(data), "\n")
	return []byte(strings.Join(slices.Replace(lines, at.line, at.line+len(e.getLines(false)), e.getLines(true)...), "\n"))
}

func equalCode(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

// declaration is a top-level declaration, with its first and its last line, counted from 0.
type declaration struct {
	name        string
	first, last int
}

// parseDeclarations returns the declarations of a file. Each value or type of a group is a declaration of its own. A
// group as a whole follows its members. Its name is its keyword.
func parseDeclarations(source []byte) ([]declaration, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []declaration
	add := func(name string, node ast.Node) {
		out = append(out, declaration{name, files.Position(node.Pos()).Line - 1, files.Position(node.End()).Line - 1})
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			add(nameOf(d), d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					add(s.Names[0].Name, s)
				case *ast.TypeSpec:
					add(s.Name.Name, s)
				}
			}
			add(d.Tok.String(), d)
		}
	}
	return out, nil
}

// nameOf returns the name of a function, or the type and the name of a method.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// readPackage reads the Go files of a package, without its tests, into `files`. The keys are relative to the root.
func readPackage(root, dir string, files map[string][]byte) error {
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range names {
		key := path.Join(dir, filepath.Base(name))
		if strings.HasSuffix(name, "_test.go") || files[key] != nil {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files[key] = data
	}
	return nil
}

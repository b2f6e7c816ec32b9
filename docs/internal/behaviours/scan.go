// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Test is a place that names a promise.
type Test struct {
	// File is the path of the Go file, with slashes, relative to the root of the repository.
	File string
	// Name is the test function, or the title of the spec where there is none.
	Name string
}

// Tests maps the ID of a promise to the tests that name it, sorted, each once.
type Tests map[string][]Test

// naming finds IDs in brackets, one or several: [L1] or [L1, C2].
var naming = regexp.MustCompile(`\[([A-Z][a-z]?[0-9]+(?:, ?[A-Z][a-z]?[0-9]+)*)\]`)

// Scan reads every *_test.go file and the conformance suite under root.
// Errors: a file that cannot be read or parsed.
func Scan(root string) (Tests, error) {
	tests := Tests{}
	fsys := os.DirFS(root)
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !holdsTests(path):
			return nil
		}
		src, err := fs.ReadFile(fsys, path)
		if err != nil {
			return err
		}
		return tests.scanFile(path, src)
	})
	if err != nil {
		return nil, fmt.Errorf("scan tests under %s: %w", root, err)
	}
	for id := range tests {
		slices.SortFunc(tests[id], func(a, b Test) int {
			return strings.Compare(a.File+"\x00"+a.Name, b.File+"\x00"+b.Name)
		})
		tests[id] = slices.Compact(tests[id])
	}
	return tests, nil
}

// holdsTests tells whether tests may be in a file.
func holdsTests(path string) bool {
	path = filepath.ToSlash(path)
	return strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".go") && strings.HasPrefix(path, "conformance/")
}

// scanFile adds what one file names.
func (t Tests) scanFile(path string, src []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		function := testName(decl)
		ast.Inspect(decl, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				t.addLiteral(path, function, lit.Value)
			}
			return true
		})
		if function != "" {
			t.addComments(path, function, decl, file.Comments)
		}
	}
	return nil
}

// testName is the name of a test function; empty for all other declarations.
func testName(decl ast.Decl) string {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok || fn.Recv != nil {
		return ""
	}
	for _, prefix := range []string{"Test", "Fuzz", "Benchmark", "Example"} {
		if strings.HasPrefix(fn.Name.Name, prefix) {
			return fn.Name.Name
		}
	}
	return ""
}

// addLiteral adds the IDs in a string. Outside a test function the string itself is the name.
func (t Tests) addLiteral(path, function, quoted string) {
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return
	}
	name := function
	if name == "" {
		name = strings.Join(strings.Fields(naming.ReplaceAllString(text, "")), " ")
		name = strings.NewReplacer(" ,", ",", " :", ":").Replace(name)
	}
	t.add(path, name, text)
}

// addComments adds the IDs in the comments of a test function.
func (t Tests) addComments(path, function string, decl ast.Decl, comments []*ast.CommentGroup) {
	from := decl.Pos()
	if fn, ok := decl.(*ast.FuncDecl); ok && fn.Doc != nil {
		from = fn.Doc.Pos()
	}
	for _, group := range comments {
		if group.Pos() >= from && group.End() <= decl.End() {
			t.add(path, function, group.Text())
		}
	}
}

// add notes each ID in a text.
func (t Tests) add(path, name, text string) {
	for _, match := range naming.FindAllStringSubmatch(text, -1) {
		for id := range strings.SplitSeq(match[1], ",") {
			id = strings.TrimSpace(id)
			t[id] = append(t[id], Test{File: path, Name: name})
		}
	}
}

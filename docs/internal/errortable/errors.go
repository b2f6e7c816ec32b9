// SPDX-License-Identifier: Apache-2.0

package errortable

import (
	"cmp"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Action stands for the name of the action that failed (Reconcile, Delete, Abort or ForceReconcile).
const Action = "ACTION"

// Error describes a kind of error. It combines all places in the code that create errors with the same reason and
// operation.
type Error struct {
	Reason, Operation string
	Codes, Messages   []string
}

// Find returns the errors of the packages in the given directories and their subdirectories, sorted by reason. It
// ignores test files and testdata. root is the root directory of the module.
func Find(root string, directories ...string) ([]Error, error) {
	found := map[[2]string]*Error{}
	sources := &sources{root: root, packages: map[string]*pkg{}}
	for _, directory := range directories {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry os.DirEntry, err error) error {
			switch {
			case err != nil || !entry.IsDir():
				return err
			case entry.Name() == "testdata":
				return filepath.SkipDir
			}
			return sources.find(path, found)
		})
		if err != nil {
			return nil, err
		}
	}
	all := make([]Error, 0, len(found))
	for _, e := range found {
		slices.Sort(e.Codes)
		slices.Sort(e.Messages)
		all = append(all, *e)
	}
	slices.SortFunc(all, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Operation, b.Operation))
	})
	return all, nil
}

// find adds the errors of the package in a directory.
func (s *sources) find(directory string, found map[[2]string]*Error) error {
	p, err := s.load(directory)
	if err != nil {
		return err
	}
	for _, file := range p.files {
		for _, decl := range file.syntax.Decls {
			scope := &scope{sources: s, pkg: p, file: file, locals: findAssignments(decl)}
			ast.Inspect(decl, func(n ast.Node) bool {
				if made, ok := scope.findSite(n); ok && err == nil {
					made.codes = append(made.codes, scope.findAppended(n)...)
					err = scope.add(made, found)
				}
				return true
			})
		}
	}
	return err
}

// site is a place in the code that creates an error.
type site struct {
	operation, reason, message ast.Expr
	codes                      []ast.Expr
	timeout                    bool // set if the called function adds ERR_TIMEOUT
}

// findSite returns the error that the syntax node n creates. It returns false if n is neither a call of a known error
// constructor nor a composite literal with the fields of an error.
func (s *scope) findSite(n ast.Node) (site, bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		return s.parseCall(n)
	case *ast.CompositeLit:
		return parseLiteral(n)
	}
	return site{}, false
}

func (s *scope) parseCall(call *ast.CallExpr) (site, bool) {
	args := call.Args
	switch name := s.qualifyName(call.Fun); {
	case name == "lserrors.NewError" && len(args) >= 3:
		return site{operation: args[0], reason: args[1], message: args[2], codes: args[3:]}, true
	case name == "lserrors.NewWrappedError" && len(args) >= 4:
		return site{operation: args[1], reason: args[2], message: args[3], codes: args[4:]}, true
	case name == "contract.NewError" && len(args) == 4:
		return site{operation: args[1], reason: args[2]}, true
	case name == "contract.newError" && len(args) >= 4:
		return site{operation: args[0], reason: args[1], message: args[2], codes: args[4:]}, true
	case name == "contract.newTimeoutError" && len(args) >= 3:
		return site{operation: args[0], reason: args[1], message: args[2], timeout: true}, true
	}
	return site{}, false
}

func parseLiteral(lit *ast.CompositeLit) (site, bool) {
	out := site{}
	for _, element := range lit.Elts {
		field, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return site{}, false
		}
		key, ok := field.Key.(*ast.Ident)
		if !ok {
			return site{}, false
		}
		switch key.Name {
		case "Operation":
			out.operation = field.Value
		case "Reason":
			out.reason = field.Value
		case "Message":
			out.message = field.Value
		case "Codes":
			out.codes = []ast.Expr{field.Value}
		}
	}
	return out, out.operation != nil && out.reason != nil
}

// add adds the error that is created at a place in the code. It ignores a place at which the reason is not constant,
// because the code there only passes on another error.
func (s *scope) add(made site, found map[[2]string]*Error) error {
	operation := Action
	if values := s.values(made.operation); len(values) == 1 {
		operation = values[0]
	}
	for _, reason := range s.values(made.reason) {
		if reason == "" {
			continue
		}
		key := [2]string{reason, operation}
		if found[key] == nil {
			found[key] = &Error{Reason: reason, Operation: operation}
		}
		e := found[key]
		e.Messages = addNew(e.Messages, s.formatMessage(made.message))
		if made.timeout {
			e.Codes = addNew(e.Codes, "ERR_TIMEOUT")
		}
		for _, code := range made.codes {
			for _, value := range s.values(code) {
				e.Codes = addNew(e.Codes, value)
			}
		}
	}
	return s.sources.err
}

func addNew(list []string, value string) []string {
	if value == "" || slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}

// ListCells returns the cells of the columns that are generated from the code: reason, operation, codes and messages.
func (e Error) ListCells() []string {
	quote := func(values []string) string {
		for i, value := range values {
			values[i] = "`" + strings.ReplaceAll(value, "|", "\\|") + "`"
		}
		return strings.Join(values, "<br>")
	}
	operation := "the action"
	if e.Operation != Action {
		operation = "`" + e.Operation + "`"
	}
	return []string{"`" + e.Reason + "`", operation, quote(slices.Clone(e.Codes)), quote(slices.Clone(e.Messages))}
}

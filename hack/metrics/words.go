// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// models are the modules whose functions show which first words are common in Kubernetes code.
var models = []string{
	"k8s.io/apimachinery@v0.37.2",
	"k8s.io/client-go@v0.37.2",
	"k8s.io/kubectl@v0.36.3",
	"sigs.k8s.io/cli-utils@v0.37.2",
	"sigs.k8s.io/controller-runtime@v0.25.2",
}

// commonText contains the common first words, one per line. The subcommand `words` prints them.
//
//go:embed words.txt
var commonText string

// isCommon reports whether a function name may begin with a word without being rare.
var isCommon = func() map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(commonText) {
		out[word] = true
	}
	return out
}()

// commonAtLeast is the number of functions out of 1000 that begin with a common word.
const commonAtLeast = 0.15

// printWords prints the common first words of the models.
func printWords(w io.Writer) error {
	counts, all := map[string]int{}, 0
	for _, module := range models {
		out, err := exec.Command("go", "mod", "download", "-json", module).Output() //nolint:gosec // the arguments are constants
		if err != nil {
			return fmt.Errorf("download %s: %w", module, err)
		}
		var found struct{ Dir string }
		if err := json.Unmarshal(out, &found); err != nil {
			return fmt.Errorf("download %s: %w", module, err)
		}
		if err := addFirstWords(found.Dir, counts); err != nil {
			return err
		}
	}
	for _, n := range counts {
		all += n
	}
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		if float64(counts[word])*1000 >= commonAtLeast*float64(all) {
			fmt.Fprintln(w, word)
		}
	}
	return nil
}

// addFirstWords counts the first words of the functions below a directory.
func addFirstWords(dir string, counts map[string]int) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				counts[getFirstWord(f.Name.Name)]++
			}
		}
		return nil
	})
}

// getFirstWord returns the first word of a name in lower case: new for NewReader, http for HTTPClient.
func getFirstWord(name string) string {
	runes := []rune(name)
	end := 1
	for end < len(runes) && unicode.IsUpper(runes[0]) && unicode.IsUpper(runes[end]) {
		end++
	}
	switch {
	case end == len(runes):
	case end > 1: // the last capital letter begins the next word
		end--
	default:
		for end < len(runes) && !unicode.IsUpper(runes[end]) {
			end++
		}
	}
	return strings.ToLower(string(runes[:end]))
}

// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const library = "github.com/deployerkit/deployerkit"

// TestModules checks the dependencies between the library and the module of this package.
func TestModules(t *testing.T) {
	t.Run("the library does not depend on Helm, nor on this module [Ex39]", func(t *testing.T) {
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join("..", "..", name))
			if err != nil {
				t.Fatal(err)
			}
			for _, unwanted := range []string{"helm.sh/", library + "/deployers/helm", "=>"} {
				if strings.Contains(string(content), unwanted) {
					t.Errorf("%s of the library contains %s", name, unwanted)
				}
			}
		}
	})
	t.Run("this module replaces only the library, and requires one version of Helm [Ex39]", func(t *testing.T) {
		content, err := os.ReadFile("go.mod")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), "helm.sh/helm/v4 v4.3.1\n") {
			t.Error("go.mod does not require helm.sh/helm/v4 v4.3.1")
		}
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, "=>") && !strings.HasPrefix(line, "replace "+library+" => ") {
				t.Errorf("go.mod contains %s", line)
			}
		}
	})
	t.Run("this module imports only public packages of the library, and only package release imports Helm [Ex39]", func(t *testing.T) {
		files := 0
		err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			files++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if strings.HasPrefix(imported, library+"/") && strings.Contains(imported+"/", "/internal/") {
					t.Errorf("%s imports %s", path, imported)
				}
				if strings.HasPrefix(imported, "helm.sh/") && !strings.HasPrefix(path, "release") && !strings.HasSuffix(path, "_test.go") {
					t.Errorf("%s imports %s", path, imported)
				}
			}
			return nil
		})
		if err != nil || files < 50 {
			t.Errorf("%v, %d files", err, files)
		}
	})
}

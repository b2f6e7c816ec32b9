// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/docs/internal/markdown"
)

// root is the path of the repository, relative to this package.
const root = ".."

// TestRelativeLinksExist checks that the file and the heading in every relative link exist.
func TestRelativeLinksExist(t *testing.T) {
	for _, path := range files(t, ".md") {
		broken, err := markdown.BrokenLinks(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range broken {
			t.Errorf("%s links to %s, which does not exist", path, link)
		}
	}
}

// TestTablesOfContentsAreComplete checks that a guide with a table of contents lists all of its sections.
func TestTablesOfContentsAreComplete(t *testing.T) {
	t.Run("tables of contents are complete [F50]", func(t *testing.T) {
		for _, path := range files(t, ".md") {
			for _, heading := range markdown.Unlisted(read(t, path)) {
				t.Errorf("%s: the table of contents does not list %q", path, heading)
			}
		}
	})
}

// TestEachDefectIsExplained checks that defects.md explains each defect of Landscaper's deployers whose ID occurs in
// the repository.
func TestEachDefectIsExplained(t *testing.T) {
	t.Run("each defect is explained [F50]", func(t *testing.T) {
		cited := regexp.MustCompile(`\b[CH]-[0-9]+\b`)
		explained := read(t, "defects.md")
		for _, path := range slices.Concat(files(t, ".go"), files(t, ".md")) {
			for _, id := range cited.FindAllString(read(t, path), -1) {
				if !strings.Contains(explained, "\n| "+id+" | ") {
					t.Errorf("%s cites %s, which defects.md does not explain", path, id)
				}
			}
		}
	})
}

// TestGoFilesInTextsExist checks that every Go file that a text names exists.
func TestGoFilesInTextsExist(t *testing.T) {
	named := regexp.MustCompile("`([a-z][a-zA-Z0-9_.-]*(?:/[a-zA-Z0-9_.-]+)+\\.go)`")
	for _, path := range files(t, ".md") {
		for _, found := range named.FindAllStringSubmatch(read(t, path), -1) {
			if _, err := os.Stat(filepath.Join(root, found[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", path, found[1])
			}
		}
	}
}

// TestControlPlaneProgramsAreNotStartedByGoRun checks that no guide starts a program with a control plane by `go run`.
// The go command does not pass SIGTERM on to the program.
func TestControlPlaneProgramsAreNotStartedByGoRun(t *testing.T) {
	t.Run("programs with a control plane are not started by go run [F80]", func(t *testing.T) {
		start := regexp.MustCompile(`go run [^ \n]*cmd/deployerkit (demo|run|conformance)\b`)
		for _, path := range files(t, ".md") {
			for _, found := range start.FindAllString(read(t, path), -1) {
				t.Errorf("%s contains %q", path, found)
			}
		}
	})
}

// TestGoBlocksAreCopiedFromFiles checks that every Go block of a guide is copied from a Go file, so it compiles. It
// skips blocks with only imports; the test of a guide that has such a block checks the imports.
func TestGoBlocksAreCopiedFromFiles(t *testing.T) {
	sources := map[string]string{}
	for _, path := range files(t, ".go") {
		sources[path] = read(t, path)
	}
	for _, path := range files(t, ".md") {
		for _, block := range markdown.GoBlocks(read(t, path)) {
			if block.Code[0] != "import (" && !copied(block, sources) {
				t.Errorf("%s:%d: this Go code is in no Go file of the repository:\n%s", path, block.Line, strings.Join(block.Code, "\n"))
			}
		}
	}
}

// TestReadmeDeployer checks that the README contains the complete source of a tested deployer, except for the licence
// line.
func TestReadmeDeployer(t *testing.T) {
	source := read(t, filepath.Join(root, "examples", "readme-deployer", "main.go"))
	_, code, _ := strings.Cut(source, "\n\n")
	want := strings.Split(strings.TrimSuffix(code, "\n"), "\n")
	blocks := markdown.GoBlocks(read(t, filepath.Join(root, "README.md")))
	if !slices.ContainsFunc(blocks, func(b markdown.Block) bool { return slices.Equal(b.Code, want) }) {
		t.Error("README.md does not show examples/readme-deployer/main.go as it is")
	}
}

func copied(block markdown.Block, sources map[string]string) bool {
	for _, source := range sources {
		if markdown.Copied(block.Code, source) {
			return true
		}
	}
	return false
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files lists the files with a suffix in the repository.
func files(t *testing.T, suffix string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

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
	t.Run("files and headings that guides link to exist [W2]", func(t *testing.T) {
		for _, path := range listFiles(t, ".md") {
			broken, err := markdown.FindBrokenLinks(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, link := range broken {
				t.Errorf("%s links to %s, which does not exist", path, link)
			}
		}
	})
}

// TestTablesOfContentsAreComplete checks that a guide with a table of contents lists all of its sections.
func TestTablesOfContentsAreComplete(t *testing.T) {
	t.Run("tables of contents are complete [F50]", func(t *testing.T) {
		for _, path := range listFiles(t, ".md") {
			for _, heading := range markdown.FindUnlisted(read(t, path)) {
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
		for _, path := range slices.Concat(listFiles(t, ".go"), listFiles(t, ".md")) {
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
	for _, path := range listFiles(t, ".md") {
		for _, found := range named.FindAllStringSubmatch(read(t, path), -1) {
			if _, err := os.Stat(filepath.Join(root, found[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", path, found[1])
			}
		}
	}
}

// TestNamesInGuidesExist checks that the code contains each name in camel case that a guide quotes. porting.md also
// quotes names of Landscaper's code, and the ADRs and the changelog quote names of earlier versions.
func TestNamesInGuidesExist(t *testing.T) {
	word, quoted := regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`), regexp.MustCompile("`[A-Za-z][A-Za-z0-9.]*`")
	camelCase := regexp.MustCompile(`^[A-Za-z]?[a-z]+[A-Z][A-Za-z0-9]*$`)
	known := map[string]bool{}
	for _, path := range slices.Concat(listFiles(t, ".go"), listFiles(t, ".yaml")) {
		for _, name := range word.FindAllString(read(t, path), -1) {
			known[name] = true
		}
	}
	for _, path := range listFiles(t, ".md") {
		if strings.Contains(path, "/adr/") || slices.Contains([]string{"porting.md", "CHANGELOG.md"}, filepath.Base(path)) {
			continue
		}
		for _, quote := range quoted.FindAllString(read(t, path), -1) {
			name := strings.Trim(quote[strings.LastIndex(quote, ".")+1:], "`")
			if camelCase.MatchString(name) && !known[name] {
				t.Errorf("%s names %s, which does not exist", path, quote)
			}
		}
	}
}

// TestStabilityOfEachPackageIsStated checks that stability.md lists each public package once, and no other package.
func TestStabilityOfEachPackageIsStated(t *testing.T) {
	t.Run("the stability of each public package is stated [Q4]", func(t *testing.T) {
		var want []string
		for _, path := range listFiles(t, ".go") {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			hidden := regexp.MustCompile(`(^|/)(internal|testdata|cmd|test|examples|hack|docs|helm)(/|$)`).MatchString(dir)
			if !hidden && dir != "." && !strings.HasSuffix(path, "_test.go") && !slices.Contains(want, dir) {
				want = append(want, dir)
			}
		}
		table, _, _ := strings.Cut(read(t, "stability.md"), "## Stored state")
		var got []string
		for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\|.*\\|.*\\|$").FindAllStringSubmatch(table, -1) {
			for name := range strings.SplitSeq(row[1], ", ") {
				got = append(got, strings.Trim(name, "`"))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("stability.md lists\n%q, want\n%q", got, want)
		}
	})
}

// TestControlPlaneProgramsAreNotStartedByGoRun checks that no guide starts a program with a control plane by `go run`.
// The go command does not pass SIGTERM on to the program.
func TestControlPlaneProgramsAreNotStartedByGoRun(t *testing.T) {
	t.Run("programs with a control plane are not started by go run [F80]", func(t *testing.T) {
		start := regexp.MustCompile(`go run [^ \n]*cmd/deployerkit (demo|run|conformance)\b`)
		for _, path := range listFiles(t, ".md") {
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
	for _, path := range listFiles(t, ".go") {
		sources[path] = read(t, path)
	}
	for _, path := range listFiles(t, ".md") {
		for _, block := range markdown.FindGoBlocks(read(t, path)) {
			if block.Code[0] != "import (" && !isCopied(block, sources) {
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
	blocks := markdown.FindGoBlocks(read(t, filepath.Join(root, "README.md")))
	if !slices.ContainsFunc(blocks, func(b markdown.Block) bool { return slices.Equal(b.Code, want) }) {
		t.Error("README.md does not show examples/readme-deployer/main.go as it is")
	}
}

func isCopied(block markdown.Block, sources map[string]string) bool {
	for _, source := range sources {
		if markdown.IsCopied(block.Code, source) {
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

// listFiles lists the files with a suffix in the repository.
func listFiles(t *testing.T, suffix string) []string {
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

// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/docs/internal/markdown"
)

// declarativeExamples is the directory of the deployers that declarative.md shows.
var declarativeExamples = filepath.Join(root, "examples", "declarative")

// TestDeclarativeDeployer checks that the guide begins with the complete source of a tested deployer, except for the
// licence line, and that the deployer is short.
func TestDeclarativeDeployer(t *testing.T) {
	const limit = 60
	_, code, _ := strings.Cut(read(t, filepath.Join(declarativeExamples, "echo", "main.go")), "\n\n")
	want := strings.Split(strings.TrimSuffix(code, "\n"), "\n")
	if len(want) >= limit {
		t.Errorf("the deployer has %d lines, want less than %d", len(want), limit)
	}
	blocks := markdown.FindGoBlocks(read(t, "declarative.md"))
	if len(blocks) == 0 || !slices.Equal(blocks[0].Code, want) {
		t.Error("declarative.md does not begin with examples/declarative/echo/main.go as it is")
	}
}

// TestDeclarativeExamplesAreDeployed checks that a spec deploys each deploy item of the examples.
func TestDeclarativeExamplesAreDeployed(t *testing.T) {
	specs, items := "", 0
	for _, path := range listFiles(t, "_test.go") {
		dir := filepath.Dir(path)
		if dir == filepath.Join(root, "test", "envtest", "declarative") || dir == filepath.Join(declarativeExamples, "echo") {
			specs += read(t, path)
		}
	}
	for _, path := range listFiles(t, ".yaml") {
		if !strings.HasPrefix(path, declarativeExamples) {
			continue
		}
		for document := range strings.SplitSeq(read(t, path), "\n---\n") {
			if !strings.Contains(document, "kind: DeployItem") {
				continue
			}
			for _, name := range listNames(document) {
				if items++; !strings.Contains(specs, `"`+name+`"`) {
					t.Errorf("%s: no spec deploys %q", path, name)
				}
			}
		}
	}
	if items < 4 {
		t.Errorf("found %d deploy items", items)
	}
}

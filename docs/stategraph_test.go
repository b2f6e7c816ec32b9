// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/docs/internal/markdown"
	"github.com/deployerkit/deployerkit/examples/galera"
	"github.com/deployerkit/deployerkit/examples/postgres"
)

// galeraExample is the directory of the deployer that stategraph.md shows.
var galeraExample = filepath.Join(root, "examples", "galera")

// TestStateGraphDeployer checks that the guide begins with the complete source of the graph, except for the licence
// line, and with the diagram of the graph.
func TestStateGraphDeployer(t *testing.T) {
	_, code, _ := strings.Cut(read(t, filepath.Join(galeraExample, "galera.go")), "\n\n")
	want := strings.Split(strings.TrimSuffix(code, "\n"), "\n")
	guide := read(t, "stategraph.md")
	blocks := markdown.FindGoBlocks(guide)
	if len(blocks) == 0 || !slices.Equal(blocks[0].Code, want) {
		t.Error("stategraph.md does not begin with examples/galera/galera.go as it is")
	}
	graph, err := galera.BuildGraph()
	if err != nil {
		t.Fatal(err)
	}
	second, err := postgres.BuildGraph()
	if err != nil {
		t.Fatal(err)
	}
	pictures := markdown.FindBlocks(guide, "mermaid")
	wanted := []string{graph.ToMermaid(), second.ToMermaid()}
	if len(pictures) != len(wanted) {
		t.Fatalf("%d pictures, want %d", len(pictures), len(wanted))
	}
	for i, picture := range pictures {
		if diff := cmp.Diff(wanted[i], strings.Join(picture.Code, "\n")+"\n"); diff != "" {
			t.Errorf("stategraph.md:%d: the picture is not that of the graph (-want +got):\n%s", picture.Line, diff)
		}
	}
}

// TestStateGraphTemplates checks that the templates in the guide are copied from the example.
func TestStateGraphTemplates(t *testing.T) {
	templates := map[string]string{}
	for _, path := range listFiles(t, ".yaml") {
		if filepath.Dir(path) == filepath.Join(galeraExample, "templates") {
			templates[path] = read(t, path)
		}
	}
	shown := 0
	for _, block := range markdown.FindBlocks(read(t, "stategraph.md"), "yaml") {
		if slices.Contains(block.Code, "kind: ProviderStatus") {
			continue // a spec of test/envtest/stategraph checks this block
		}
		if shown++; !isCopied(block, templates) {
			t.Errorf("stategraph.md:%d: this is in no template of examples/galera:\n%s", block.Line, strings.Join(block.Code, "\n"))
		}
	}
	if shown == 0 {
		t.Error("the guide shows no template")
	}
}

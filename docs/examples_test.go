// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/docs/internal/markdown"
)

// manifestExamples is the directory of the deploy items in manifest-deployer.md.
var manifestExamples = filepath.Join(root, "examples", "manifest-deployer")

// TestManifestExamplesAreDeployed checks that each YAML block of the guide is copied from a deploy item of the
// examples, and that a spec deploys each of these deploy items.
func TestManifestExamplesAreDeployed(t *testing.T) {
	items, specs := map[string]string{}, ""
	for _, path := range listFiles(t, ".yaml") {
		if filepath.Dir(path) == manifestExamples {
			items[path] = read(t, path)
		}
	}
	for _, path := range listFiles(t, "_test.go") {
		if filepath.Dir(path) == filepath.Join(root, "test", "envtest", "manifest") {
			specs += read(t, path)
		}
	}
	for _, block := range markdown.FindBlocks(read(t, "manifest-deployer.md"), "yaml") {
		if !isCopied(block, items) {
			t.Errorf("manifest-deployer.md:%d: this is in no deploy item of examples/manifest-deployer:\n%s", block.Line, strings.Join(block.Code, "\n"))
		}
	}
	for path, body := range items {
		for _, name := range listNames(body) {
			if !strings.Contains(specs, `"`+name+`"`) && !strings.HasPrefix(name, "strategy-") {
				t.Errorf("%s: no spec of test/envtest/manifest deploys %q", path, name)
			}
		}
	}
}

// listNames returns the names of the deploy items in a file.
func listNames(body string) []string {
	var out []string
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "  name: "); ok {
			out = append(out, strings.TrimSpace(name))
		}
	}
	return out
}

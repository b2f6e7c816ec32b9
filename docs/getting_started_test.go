// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/docs/internal/markdown"
)

// gettingStartedItem is the file of the deploy item that the user of the guide creates.
var gettingStartedItem = filepath.Join(root, "examples", "readme-deployer", "item.yaml")

// TestGettingStartedExamplesAreDeployed checks that each YAML block of the guide is copied from a file that a spec
// deploys, and that the guide links these files.
func TestGettingStartedExamplesAreDeployed(t *testing.T) {
	guide := read(t, "getting-started.md")
	t.Run("each YAML block is deployed by a spec [F48]", func(t *testing.T) {
		sources := map[string]string{gettingStartedItem: read(t, gettingStartedItem)}
		for _, path := range listFiles(t, ".yaml") {
			if filepath.Base(filepath.Dir(path)) == "getting-started" {
				sources[path] = read(t, path)
				if !strings.Contains(guide, "("+filepath.ToSlash(path)+")") {
					t.Errorf("the guide does not link %s", path)
				}
			}
		}
		if len(sources) < 4 {
			t.Errorf("found %d files, want the cluster, two Installations and a deploy item", len(sources))
		}
		for _, block := range markdown.FindBlocks(guide, "yaml") {
			if !isCopied(block, sources) {
				t.Errorf("getting-started.md:%d: this is in none of its files:\n%s", block.Line, strings.Join(block.Code, "\n"))
			}
		}
	})
	t.Run("the guide begins with its purpose and a complete example [F48]", func(t *testing.T) {
		first := strings.Join(strings.SplitN(guide, "\n", 21)[:20], "\n")
		for _, want := range []string{"This page is for", "go run ./examples/readme-deployer", "password.yaml", "app.yaml"} {
			if !strings.Contains(first, want) {
				t.Errorf("its first 20 lines do not have %q", want)
			}
		}
		if !strings.Contains(read(t, filepath.Join(root, "README.md")), "(docs/getting-started.md)") {
			t.Error("README.md does not link it")
		}
	})
}

// TestDeployItemsHaveKindOfConfiguration checks that each deploy item of the examples has a configuration that the API
// server accepts.
func TestDeployItemsHaveKindOfConfiguration(t *testing.T) {
	t.Run("deploy items name the kind of their configuration [F48]", func(t *testing.T) {
		var types []string
		for _, path := range listFiles(t, ".yaml") {
			if !strings.HasPrefix(path, filepath.Join(root, "examples")+string(filepath.Separator)) {
				continue
			}
			for _, item := range readDeployItems(t, path) {
				types = append(types, item.Spec.Type)
				if item.Spec.Config.APIVersion == "" || item.Spec.Config.Kind == "" {
					t.Errorf("%s: a deploy item lacks spec.config.apiVersion or kind", path)
				}
			}
		}
		for _, want := range []string{
			"example.org/password", "example.org/disk", "example.org/galera", "example.org/echo", "example.org/batch", "example.org/licence",
			"example.org/redis", "landscaper.gardener.cloud/mock", "landscaper.gardener.cloud/kubernetes-manifest",
		} {
			if !slices.Contains(types, want) {
				t.Errorf("there is no deploy item of type %s", want)
			}
		}
	})
}

// deployItem contains the type of a deploy item and the kind of its configuration.
type deployItem struct {
	Spec struct {
		Type   string `json:"type"`
		Config struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		} `json:"config"`
	} `json:"spec"`
}

// readDeployItems returns the deploy items in a file.
func readDeployItems(t *testing.T, path string) []deployItem {
	t.Helper()
	var out []deployItem
	for document := range strings.SplitSeq(read(t, path), "\n---\n") {
		if !strings.Contains("\n"+document, "\nkind: DeployItem\n") {
			continue
		}
		item := deployItem{}
		if err := yaml.Unmarshal([]byte(document), &item); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, item)
	}
	return out
}

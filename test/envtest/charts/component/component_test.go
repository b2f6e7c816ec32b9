// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	cdv2 "github.com/gardener/landscaper/legacy-component-spec/bindings-go/apis/v2"
	"github.com/gardener/landscaper/legacy-component-spec/bindings-go/codec"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

func TestComponent(t *testing.T) {
	for _, name := range []string{"helm-deployer", "manifest-deployer", "mock-deployer"} {
		t.Run(name+" has the resources and the imports of Landscaper's component [O69]", func(t *testing.T) {
			dir := t.TempDir()
			check(t, write(name, "registry.example:5000/x", "v0.1.0", dir))
			raw, err := os.ReadFile(filepath.Join(dir, "component-descriptor.yaml"))
			check(t, err)
			descriptor := &cdv2.ComponentDescriptor{}
			// Decode also validates the descriptor against the schema of its format
			check(t, codec.Decode(raw, descriptor))
			types := map[string]string{}
			for _, resource := range descriptor.Resources {
				types[resource.Name] = resource.Type
			}
			if types[name+"-chart"] != "helmChart" || types[name+"-image"] != "ociImage" || types[name+"-blueprint"] != "landscaper.gardener.cloud/blueprint" {
				t.Errorf("the resources are %v", types)
			}
			blueprint := &lsv1alpha1.Blueprint{}
			check(t, yaml.UnmarshalStrict(readArchive(t, filepath.Join(dir, "blobs", "blueprint.tar.gz")), blueprint))
			required := map[string]bool{"cluster": true, "landscaperCluster": false, "releaseName": true, "releaseNamespace": true, "identity": false, "values": true, "targetSelectors": false}
			for _, definition := range blueprint.Imports {
				if want, known := required[definition.Name]; !known || want != (definition.Required == nil || *definition.Required) {
					t.Errorf("import %s", definition.Name)
				}
				delete(required, definition.Name)
			}
			if len(required) > 0 {
				t.Errorf("these imports are missing: %v", required)
			}
			var text string
			check(t, json.Unmarshal(blueprint.DeployExecutions[0].Template.RawMessage, &text))
			checkItem(t, name, text, raw)
		})
	}
}

// checkItem executes the template of the blueprint as Landscaper does, and renders the chart with the values of the
// item.
func checkItem(t *testing.T, name, text string, descriptor []byte) {
	t.Helper()
	cd, imports := map[string]any{}, map[string]any{}
	check(t, yaml.Unmarshal(descriptor, &cd))
	check(t, yaml.Unmarshal([]byte(`{releaseName: rel, releaseNamespace: ls, identity: me, values: {replicaCount: 2, deployer: {verbosityLevel: debug}},
targetSelectors: [{targets: [{name: t}]}], landscaperCluster: {spec: {config: {kubeconfig: "apiVersion: v1"}}}}`), &imports))
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value any) string { out, _ := yaml.Marshal(value); return strings.TrimSpace(string(out)) }
	functions["getResource"] = func(cd map[string]any, _, name string) any {
		for _, resource := range cd["component"].(map[string]any)["resources"].([]any) {
			if resource.(map[string]any)["name"] == name {
				return resource
			}
		}
		return nil
	}
	var out bytes.Buffer
	check(t, template.Must(template.New("").Funcs(functions).Parse(text)).Execute(&out, map[string]any{"cd": cd, "imports": imports}))
	var rendered struct {
		DeployItems []struct {
			Type   string
			Config json.RawMessage
		}
	}
	check(t, yaml.Unmarshal(out.Bytes(), &rendered))
	config := &helmv1alpha1.ProviderConfiguration{}
	check(t, yaml.UnmarshalStrict(rendered.DeployItems[0].Config, config))
	if *config.HelmDeployment || config.Chart.Ref != "registry.example:5000/x/charts/"+name+":0.1.0" {
		t.Errorf("the item is\n%s", &out)
	}
	manifest, err := helm.Render(helm.FindChart(name), config.Name, config.Namespace, string(config.Values))
	check(t, err)
	for _, want := range []string{"registry.example:5000/x/" + name + ":v0.1.0", "-v=debug", "rel-" + name + "-landscaper-cluster-kubeconfig"} {
		if !strings.Contains(manifest.Manifest, want) {
			t.Errorf("%s is not in\n%s", want, manifest.Manifest)
		}
	}
}

func readArchive(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	check(t, err)
	defer file.Close() //nolint:errcheck // was read
	compressed, err := gzip.NewReader(file)
	check(t, err)
	files := tar.NewReader(compressed)
	_, err = files.Next()
	check(t, err)
	content, err := io.ReadAll(files)
	check(t, err)
	return content
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

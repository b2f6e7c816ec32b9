// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/deployers/helm"
)

// readGuide returns the text of the guide.
func readGuide(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/helm-deployer.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// listBlocks returns the code blocks of a language in a guide.
func listBlocks(text, language string) (out []string) {
	for {
		_, after, found := strings.Cut(text, "\n```"+language+"\n")
		if !found {
			return out
		}
		block, rest, _ := strings.Cut(after, "\n```\n")
		out, text = append(out, block+"\n"), rest
	}
}

// TestGuideIsDecoded checks that the deployer accepts the configurations in the guide, and that Landscaper accepts its
// objects.
func TestGuideIsDecoded(t *testing.T) {
	blocks := listBlocks(readGuide(t), "yaml")
	if len(blocks) < 10 {
		t.Fatalf("the guide has %d blocks", len(blocks))
	}
	for _, block := range blocks {
		fields := map[string]any{}
		if err := yaml.Unmarshal([]byte(block), &fields); err != nil {
			t.Fatalf("%v in:\n%s", err, block)
		}
		di := &lsv1alpha1.DeployItem{}
		switch fields["kind"] {
		case "Context":
			if err := yaml.UnmarshalStrict([]byte(block), &lsv1alpha1.Context{}); err != nil {
				t.Errorf("%v in:\n%s", err, block)
			}
			continue
		case "DeployItem":
			if err := yaml.UnmarshalStrict([]byte(block), di); err != nil {
				t.Errorf("%v in:\n%s", err, block)
			}
		default:
			config := map[string]any{
				"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": "web", "namespace": "demo",
				"chart": map[string]any{"ref": "registry.example.com/charts/test:1.0.0"},
			}
			maps.Copy(config, fields)
			raw, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			di.Spec.Configuration = &runtime.RawExtension{Raw: raw}
		}
		if _, err := helm.Decode(di, helm.Options{}); err != nil {
			t.Errorf("[E1] %v in:\n%s", err, block)
		}
	}
}

// TestGuideNamesFlags checks that each flag of the guide exists, and that the guide names each flag that only this
// program has.
func TestGuideNamesFlags(t *testing.T) {
	guide, p := readGuide(t), &program{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.flags.addTo(fs)
	fs.VisitAll(func(flag *pflag.Flag) {
		own := strings.HasPrefix(flag.Name, "chart-") || strings.HasPrefix(flag.Name, "render-") || strings.HasPrefix(flag.Name, "operation-")
		if own && !strings.Contains(guide, "`--"+flag.Name) {
			t.Errorf("the guide does not name --%s", flag.Name)
		}
	})
	for _, part := range strings.Split(guide, "`--")[1:] {
		name, _, _ := strings.Cut(part, "`")
		name, _, _ = strings.Cut(name, " ")
		if fs.Lookup(name) == nil {
			t.Errorf("the guide names --%s, which does not exist", name)
		}
	}
}

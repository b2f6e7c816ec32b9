// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/deployerlib"
)

const head = "apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1\nkind: Configuration\n"

// extended is the configuration of a deployer with a field of its own.
type extended struct {
	Configuration `json:",inline"`

	URL string `json:"url"`
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigurationReachesTheDeployer(t *testing.T) {
	config := &extended{}
	err := readConfiguration(write(t, head+`
identity: me
targetSelector: [{targets: [{name: a, namespace: b}]}]
controller: {workers: 30, cacheSyncTimeout: 3m}
url: https://example.org
`), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	args := deployerlib.DeployerArgs{}
	config.applyTo(&args)
	got := []any{args.Identity, args.TargetSelectors, args.Options.MaxConcurrentReconciles, args.Options.CacheSyncTimeout, config.URL, config.listIgnoredFields()}
	want := []any{
		"me",
		[]lsv1alpha1.TargetSelector{{Targets: []lsv1alpha1.ObjectReference{{Name: "a", Namespace: "b"}}}},
		30, 3 * time.Minute,
		"https://example.org", []string(nil),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	args = deployerlib.DeployerArgs{Identity: "mine"}
	(&Configuration{}).applyTo(&args)
	if diff := cmp.Diff(deployerlib.DeployerArgs{Identity: "mine"}.Identity, args.Identity); diff != "" {
		t.Errorf("an empty file must change nothing: -want, +got:\n%s", diff)
	}
}

// charts contains configuration files that the charts of Landscaper and of openMCP render. The name of a test case
// contains the version of Landscaper that introduced the format.
var charts = map[string]struct {
	file     string
	noEffect []string
}{
	"v0.20 [F46] [O24]":  {"identity: one\nnamespace: ls-system\n", []string{"namespace"}},
	"v0.24 [F46] [O24]":  {"namespace: ls-system\ncontroller: {workers: 30}\n", []string{"namespace"}},
	"v0.77 [F46] [O24]":  {"namespace: ls-system\ncontroller: {workers: 30}\nhpa: {maxReplicas: 1}\n", []string{"hpa.maxReplicas", "namespace"}},
	"v0.78 [F46] [O24]":  {"namespace: a\nuseOCMLib: false\nhpa: {maxReplicas: 3, averageCpuUtilization: 80, averageMemoryUtilization: 80}\n", []string{"hpa.averageCpuUtilization", "hpa.averageMemoryUtilization", "hpa.maxReplicas", "namespace", "useOCMLib"}},
	"v0.152 [F46] [O24]": {"namespace: a\ntargetSelector: [{annotations: [{key: k, operator: exists}]}]\nhpa: {maxReplicas: 1, averageCpuUtilization: 80, averageMemoryUtilization: 80}\ncontroller: {workers: 30, cacheSyncTimeout: 2m}\n", []string{"hpa.averageCpuUtilization", "hpa.averageMemoryUtilization", "hpa.maxReplicas", "namespace"}},
	"openMCP [O25]":      {"identity: manifest-deployer-x\ncontroller: {workers: 30, cacheSyncTimeout: null}\n", nil},
}

func TestConfigurationOfLandscaperCharts(t *testing.T) {
	for name, tc := range charts {
		t.Run(name, func(t *testing.T) {
			config := &Configuration{}
			if err := readConfiguration(write(t, head+tc.file), config, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.noEffect, config.listIgnoredFields()); diff != "" {
				t.Errorf("fields without an effect: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestConfigurationRejectsUnknownFields(t *testing.T) {
	for name, tc := range map[string]struct{ content, err string }{
		"Unknown [O24]":     {head + "identidy: me\n", `unknown field "identidy"`},
		"UnknownDeep [O24]": {head + "hpa: {minReplicas: 1}\n", `unknown field "minReplicas"`},
		"Twice":             {head + "identity: a\nidentity: b\n", "identity"},
		"OtherKind":         {"apiVersion: v1\nkind: Secret\n", `is v1 "Secret", want mock.`},
		"OtherGroup":        {"apiVersion: v1\nkind: Configuration\n", `is v1 "Configuration", want mock.`},
		"NoKind":            {"identity: me\n", `is  "", want mock.`},
		"Broken":            {"a: [", "decode configuration"},
		"Workers":           {head + "controller: {workers: -1}\n", "controller.workers: is -1"},
		"CacheSync":         {head + "controller: {cacheSyncTimeout: 0s}\n", "controller.cacheSyncTimeout: is 0s"},
		"Selector":          {head + "targetSelector: [{labels: [{key: a, operator: similar}]}]\n", "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readConfiguration(write(t, tc.content), &Configuration{}, []schema.GroupVersionKind{mockv1alpha1.SchemeGroupVersion.WithKind("Configuration")})
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("want an error with %q, got %v", tc.err, err)
			}
		})
	}
	if err := readConfiguration(write(t, "apiVersion: example.org/v1\nkind: Secret\n"), &Configuration{}, nil); err == nil || !strings.Contains(err.Error(), `must have an apiVersion and the kind "Configuration"`) {
		t.Errorf("without kinds: want an error about the kind, got %v", err)
	}
	if err := readConfiguration("", &Configuration{}, nil); err != nil {
		t.Errorf("without a file: %v", err)
	}
	if err := readConfiguration(filepath.Join(t.TempDir(), "none"), &Configuration{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: want not exist, got %v", err)
	}
}

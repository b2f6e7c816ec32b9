// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pmezard/go-difflib/difflib"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

var update = flag.Bool("update", false, "write the golden files")

func TestLintFindsNothing(t *testing.T) {
	t.Run("the linter finds no problem [O63]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			found, err := helm.RunLint(helm.FindChart(chart), "")
			if err != nil || len(found) > 0 {
				t.Errorf("%v, %q", err, found)
			}
		})
	})
}

// TestTemplatesDoNotUseTheCluster checks that the charts consist of plain manifests, because Landscaper's helm deployer
// applies them as manifests.
func TestTemplatesDoNotUseTheCluster(t *testing.T) {
	t.Run("no template reads the cluster, and no object is a hook or a test [O61]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			templates, err := filepath.Glob(filepath.Join(helm.FindChart(chart), "templates", "*"))
			if err != nil || len(templates) == 0 {
				t.Fatal("no templates", err)
			}
			for _, path := range templates {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if found := regexp.MustCompile(`\blookup\b|helm\.sh/hook|randAlpha|genSelfSigned|\bnow\b`).Find(content); found != nil {
					t.Errorf("%s uses %s", path, found)
				}
			}
		})
	})
}

// samples contains a value for each path in the chart values. Each of these values differs from the default.
var samples = map[string]string{
	"nameOverride": "other", "fullnameOverride": "whole", "replicaCount": "2", "image.repository": "r.example/x", "image.tag": "v1", "image.pullPolicy": "Always",
	"imagePullSecrets": "[{name: pull}]", "deployer.landscaperClusterKubeconfig.kubeconfig": "content", "deployer.landscaperClusterKubeconfig.secretRef": "access",
	"deployer.identity": "me", "deployer.namespace": "nowhere", "deployer.verbosityLevel": "debug", "deployer.targetSelector": "[{targets: [{name: t, namespace: ns}]}]",
	"deployer.controller.workers": "5", "deployer.controller.cacheSyncTimeout": "3m", "deployer.k8sClientSettings.hostClient.burst": "1",
	"deployer.k8sClientSettings.hostClient.qps": "1", "deployer.k8sClientSettings.resourceClient.burst": "1", "deployer.k8sClientSettings.resourceClient.qps": "1",
	"hpa.maxReplicas": "3", "hpa.averageCpuUtilization": "50", "hpa.averageMemoryUtilization": "50", "serviceAccount.create": "false",
	"serviceAccount.annotations": "{a: b}", "serviceAccount.name": "mine", "serviceAccount.tmpSuffix": "true", "podAnnotations": "{a: 1}",
	"podSecurityContext.runAsNonRoot": "false", "podSecurityContext.seccompProfile": "{type: Unconfined}", "securityContext.allowPrivilegeEscalation": "true",
	"securityContext.capabilities": "{drop: [], add: [CHOWN]}", "securityContext.readOnlyRootFilesystem": "false", "resources": "{limits: {memory: 1Gi}}",
	"nodeSelector": "{a: b}", "tolerations": "[{key: k}]", "affinity": "{nodeAffinity: {}}", "identity": "nothing", "useOCMLib": "true",
	"deployer.watchNamespace": "shop", "deployer.itemSelector": "a=b", "deployer.shards": "2", "deployer.gracePeriodSeconds": "60", "deployer.oci.secrets": "{a: {auths: {}}}", "deployer.oci.allowPlainHttp": "true", "deployer.oci.insecureSkipVerify": "true",
	"deployer.charts.hosts": "['a.example:private']", "deployer.charts.allowPrivateHosts": "true", "deployer.updateStrategy": "update", "deployer.recreate": "true",
	"deployer.targets.allowInsecureTLS": "true", "deployer.targets.allowHTTP": "true", "deployer.targets.allowProxy": "true", "deployer.targets.allowPrivateHosts": "true",
	"deployer.targets.allowForeignSecrets": "true", "deployer.targets.enableOIDC": "true", "deployer.targets.enableSelf": "true",
	"deployer.targets.landscaperAudiences": "[a, b]", "leaderElection.enabled": "false", "rbac.create": "false", "rbac.landscaperClusterOnly": "true",
	"rbac.tokenNamespaces": "[a]", "health.port": "9081", "metrics.enabled": "false", "metrics.port": "9080", "metrics.job": "metrics",
	"metrics.podMonitor.enabled": "true", "metrics.podMonitor.namespace": "monitoring", "metrics.podMonitor.labels": "{release: prometheus}", "metrics.podMonitor.interval": "1m",
	"metrics.rules.enabled": "true", "metrics.rules.namespace": "monitoring", "metrics.rules.labels": "{release: prometheus}",
	"metrics.dashboard.enabled": "true", "metrics.dashboard.namespace": "monitoring", "metrics.dashboard.labels": "{folder: landscaper}", "proxy.httpProxy": "http://p.example", "proxy.httpsProxy": "http://p.example",
	"proxy.noProxy": ".svc", "caBundle.configMap": "cas", "caBundle.secret": "cas", "networkPolicy.enabled": "true", "networkPolicy.apiServerPorts": "[8443]",
	"podDisruptionBudget.enabled": "false", "podDisruptionBudget.maxUnavailable": "2", "extraArgs": "[--target-share=0.3]", "extraEnv": "[{name: X, value: z}]",
	"extraVolumes": "[{name: v, emptyDir: {}}]", "extraVolumeMounts": "[{name: v, mountPath: /v}]",
	"extraObjects": "[{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}]", "podLabels": "{a: b}", "commonLabels": "{a: b}", "topologySpreadConstraints": "[]",
	"priorityClassName": "p", "revisionHistoryLimit": "3", "hostUsers": "false", "runtimeClassName": "r", "dnsPolicy": "Default", "automountServiceAccountToken": "false",
}

// beside contains additional values for some samples, which otherwise have no effect.
var beside = map[string]string{
	"hpa.averageCpuUtilization": "hpa.maxReplicas", "hpa.averageMemoryUtilization": "hpa.maxReplicas", "podDisruptionBudget.enabled": "replicaCount",
	"podDisruptionBudget.maxUnavailable": "replicaCount", "networkPolicy.apiServerPorts": "networkPolicy.enabled", "rbac.tokenNamespaces": "deployer.targets.enableSelf",
	"deployer.targets.landscaperAudiences": "deployer.targets.enableOIDC", "metrics.job": "metrics.rules.enabled",
	"metrics.podMonitor.namespace": "metrics.podMonitor.enabled", "metrics.podMonitor.labels": "metrics.podMonitor.enabled", "metrics.podMonitor.interval": "metrics.podMonitor.enabled",
	"metrics.rules.namespace": "metrics.rules.enabled", "metrics.rules.labels": "metrics.rules.enabled",
	"metrics.dashboard.namespace": "metrics.dashboard.enabled", "metrics.dashboard.labels": "metrics.dashboard.enabled",
	"deployer.oci.allowPlainHttp":     "deployer.oci.secrets",
	"deployer.oci.insecureSkipVerify": "deployer.oci.secrets",
}

// ineffective lists values of Landscaper's charts. The charts of this repository accept these values, but ignore them.
var ineffective = []string{"deployer.namespace", "identity", "useOCMLib"}

// TestEachValueChangesItsObjects compares the rendered output with the archives in testdata. The archives contain the
// output for the default values, and the changes that each sample causes.
func TestEachValueChangesItsObjects(t *testing.T) {
	t.Run("each value changes the described objects, and the default is stable [O65]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			before := render(t, chart, "").Manifest
			if again := render(t, chart, "").Manifest; again != before {
				t.Error("the default changes")
			}
			archive := &txtar.Archive{
				Comment: []byte("What " + chart + " renders by default, and what each value changes. `go test ./render -update` writes this file.\n"),
				Files:   []txtar.File{{Name: "default.yaml", Data: []byte(before)}},
			}
			for _, path := range paths(t, chart) {
				sample, has := samples[path]
				if !has {
					t.Errorf("there is no sample of %s", path)
				}
				base := ""
				if other := beside[path]; other != "" {
					base = nested(other, samples[other])
				}
				diff := difference(t, render(t, chart, base).Manifest, render(t, chart, merged(base, nested(path, sample))).Manifest)
				if (diff == "") != slices.Contains(ineffective, path) {
					t.Errorf("%s: %s changes:\n%s", path, sample, diff)
				}
				archive.Files = append(archive.Files, txtar.File{Name: path + "=" + sample, Data: []byte(diff)})
			}
			compareGolden(t, chart+".txtar", txtar.Format(archive))
		})
	})
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got:\n%s", path, diff)
	}
}

// paths returns the paths of all values of a chart, from its schema.
func paths(t *testing.T, chart string) []string {
	t.Helper()
	var out []string
	var walk func(schema map[string]any, prefix string)
	walk = func(schema map[string]any, prefix string) {
		properties, _ := schema["properties"].(map[string]any)
		for name, child := range properties {
			walk(child.(map[string]any), prefix+"."+name)
		}
		if properties == nil {
			out = append(out, strings.TrimPrefix(prefix, "."))
			if schema["description"] == nil {
				t.Errorf("%s has no description", prefix)
			}
		}
	}
	schema := map[string]any{}
	content, err := os.ReadFile(filepath.Join(helm.FindChart(chart), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	walk(schema, "")
	slices.Sort(out)
	return out
}

// nested returns a line of YAML that contains only the given value, at the given path.
func nested(path, value string) string {
	parts := strings.Split(path, ".")
	return "{" + strings.Join(parts, ": {") + ": " + value + strings.Repeat("}", len(parts))
}

// merged merges two sets of chart values, and returns them as JSON. The values in b take precedence.
func merged(a, b string) string {
	if a == "" {
		return b
	}
	first, _ := helm.Values(a)
	second, _ := helm.Values(b)
	raw, _ := json.Marshal(deep(first, second))
	return string(raw)
}

func deep(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for key, value := range b {
		inner, isMap := value.(map[string]any)
		if old, both := out[key].(map[string]any); both && isMap {
			value = deep(old, inner)
		}
		out[key] = value
	}
	return out
}

// difference returns the lines that differ between two manifests, grouped by object.
func difference(t *testing.T, before, after string) string {
	t.Helper()
	a, b := byName(t, before), byName(t, after)
	var out strings.Builder
	for _, name := range slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, key := range slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))) {
			if !yield(key) {
				return
			}
		}
	})) {
		if a[name] == b[name] {
			continue
		}
		out.WriteString(name + "\n")
		diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(a[name]), B: difflib.SplitLines(b[name])})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(diff) {
			if !strings.HasPrefix(line, "@@") && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "---") && strings.TrimSpace(line) != "-" && strings.TrimSpace(line) != "+" {
				out.WriteString(line)
			}
		}
	}
	return out.String()
}

// byName returns the objects of a manifest as YAML.
func byName(t *testing.T, manifest string) map[string]string {
	t.Helper()
	objects, err := helm.Objects(manifest)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, object := range objects {
		if data, _, _ := unstructured.NestedStringMap(object.Object, "data"); object.GetKind() == "Secret" {
			for key := range data {
				data[key] = getSecretData(t, object, key)
			}
			delete(object.Object, "data")
			object.Object["decoded"] = data
		}
		out[strings.TrimSuffix(object.GetKind()+" "+object.GetName()+" "+object.GetNamespace(), " ")] = toYAML(t, object.Object)
	}
	return out
}

// copyRights copies the file rbac.yaml of a deployer to a directory with the structure of the repository.
func copyRights(dir, name string) error {
	content, err := os.ReadFile(filepath.Join(helm.Root(), "deployers", name, "rbac.yaml"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "deployers", name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "deployers", name, "rbac.yaml"), content, 0o644)
}

// TestEachValueIsDescribed checks that the schema, the README and values.yaml contain the same values.
func TestEachValueIsDescribed(t *testing.T) {
	t.Run("each value is described in the README and in values.yaml [O64]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			readme, err := os.ReadFile(filepath.Join(helm.FindChart(chart), "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			schema, err := os.ReadFile(filepath.Join(helm.FindChart(chart), "values.schema.json"))
			if err != nil || !strings.Contains(string(schema), `"http://json-schema.org/draft-07/schema#"`) {
				t.Errorf("the schema is not of draft 7: %v", err)
			}
			for _, path := range paths(t, chart) {
				if !strings.Contains(string(readme), "| `"+path+"` |") {
					t.Errorf("%s is not in the README", path)
				}
			}
			if want := "| `image.repository` | `ghcr.io/deployerkit/" + chart + "` |"; !strings.Contains(string(readme), want) {
				t.Errorf("%s is not in the README", want)
			}
		})
	})
	t.Run("the generated files are up to date [O64]", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"helm", "manifest", "mock"} {
			if err := copyRights(dir, name); err != nil {
				t.Fatal(err)
			}
		}
		generate := exec.Command("go", "run", "./internal/chart/generate", dir)
		generate.Dir = helm.Root()
		if out, err := generate.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := exec.Command("diff", "-r", filepath.Join(dir, "charts"), filepath.Join(helm.Root(), "charts"), "--exclude=icon.svg").CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

const withMonitoring = `metrics:
  podMonitor: {enabled: true, namespace: monitoring, labels: {release: prometheus, app.kubernetes.io/name: mine}, interval: 1m}
  rules: {enabled: true, namespace: alerts, labels: {release: prometheus}}
  dashboard: {enabled: true, namespace: grafana, labels: {folder: 1}}
`

func TestMonitoring(t *testing.T) {
	t.Run("no object for monitoring is rendered by default [O57]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			for _, kind := range []string{"PodMonitor", "PrometheusRule", "ConfigMap"} {
				if found := all(render(t, chart, ""), kind); len(found) > 0 {
					t.Errorf("there is %s %s", kind, found[0].GetName())
				}
			}
		})
	})
	t.Run("objects for monitoring have the labels and the namespaces of the user [O57]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			r := render(t, chart, withMonitoring)
			monitor := one(t, r, "PodMonitor")
			require(t, monitor, "metadata.namespace", "monitoring")
			require(t, monitor, "metadata.labels.release", "prometheus")
			require(t, monitor, "metadata.labels.app~kubernetes~io/name", chart)
			require(t, monitor, "spec", "{namespaceSelector: {matchNames: [ls-system]}, selector: {matchLabels: {app.kubernetes.io/name: "+chart+", app.kubernetes.io/instance: rel}}, podMetricsEndpoints: [{port: metrics, interval: 1m}]}")
			require(t, one(t, r, "PrometheusRule"), "metadata.namespace", "alerts")
			require(t, one(t, r, "PrometheusRule"), "metadata.labels.release", "prometheus")
			require(t, one(t, r, "ConfigMap"), "metadata.namespace", "grafana")
			require(t, one(t, r, "ConfigMap"), "metadata.labels.folder", "'1'")
			require(t, one(t, r, "ConfigMap"), "metadata.labels.grafana_dashboard", "'1'")
		})
	})
	t.Run("the metrics must be enabled [O57]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			_, err := helm.Render(helm.FindChart(chart), "rel", "ls-system", "metrics: {enabled: false, rules: {enabled: true}}")
			if err == nil || !strings.Contains(err.Error(), "metrics.enabled: podMonitor, rules and dashboard need the metrics") {
				t.Errorf("got %v", err)
			}
		})
	})
}

// TestMonitoringOfOneRelease checks that alerts and dashboard are those of the shared source, for the job of the release.
func TestMonitoringOfOneRelease(t *testing.T) {
	for name, test := range map[string]struct{ values, job string }{
		"by default [O57]":          {"", "ls-system/rel-CHART"},
		"with a PodMonitor [O57]":   {"metrics: {podMonitor: {enabled: true, namespace: monitoring}}", "monitoring/rel-CHART"},
		"with a job of users [O57]": {"metrics: {job: mine}", "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				job := strings.ReplaceAll(test.job, "CHART", chart)
				r := render(t, chart, merged("metrics: {rules: {enabled: true}, dashboard: {enabled: true}}", test.values))
				var want map[string]any
				parse(t, strings.ReplaceAll(readSource(t, "rules.yaml"), `job="deployer"`, `job="`+job+`"`), &want)
				if diff := cmp.Diff(want, one(t, r, "PrometheusRule").Object["spec"]); diff != "" {
					t.Errorf("alerts, -want +got:\n%s", diff)
				}
				compareDashboard(t, one(t, r, "ConfigMap"), job)
			})
		})
	}
}

// compareDashboard compares a rendered dashboard with its source.
func compareDashboard(t *testing.T, object *unstructured.Unstructured, job string) {
	t.Helper()
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	for file, content := range data {
		var got, want map[string]any
		if err := json.Unmarshal([]byte(content), &got); err != nil || !strings.HasSuffix(file, ".json") {
			t.Fatalf("%s: %v", file, err)
		}
		parse(t, strings.ReplaceAll(readSource(t, "dashboard.json"), `"deployer"`, `"`+job+`"`), &want)
		if uid := got["uid"].(string); !strings.HasPrefix(uid, "deployerkit-") || len(uid) > 40 {
			t.Errorf("the uid is %q", uid)
		}
		want["uid"], want["title"] = got["uid"], "Deployer "+job
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("dashboard, -want +got:\n%s", diff)
		}
	}
	if len(data) != 1 {
		t.Errorf("there are %d dashboards", len(data))
	}
}

func readSource(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(helm.Root(), "internal", "chart", "monitoring", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func parse(t *testing.T, text string, to any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), to); err != nil {
		t.Fatal(err)
	}
}

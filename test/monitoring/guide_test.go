// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
)

func mustParse(t *testing.T, query string) parser.Expr {
	t.Helper()
	expr, err := queryParser.ParseExpr(query)
	must(t, err)
	return expr
}

// guide is the name of the guide.
const guide = "monitoring.md"

// row matches a row of the tables of metrics. The groups are the name and the labels.
var row = regexp.MustCompile("(?m)^\\| `(deployerkit_[a-z_]+)` \\|([^|]*)\\|")

// suffix matches the suffix of a series of a histogram.
var suffix = regexp.MustCompile(`_(bucket|sum|count)$`)

// checkGuide compares the metrics in the guide and their labels with those of programs.
func checkGuide(t *testing.T, recordings ...*recording) {
	t.Helper()
	exported, described := map[string][]string{}, map[string][]string{}
	for _, r := range recordings {
		for _, samples := range r.scrapes {
			for _, s := range samples {
				name := suffix.ReplaceAllString(s.series.Get("__name__"), "")
				if strings.HasPrefix(name, "deployerkit_") {
					exported[name] = listLabels(s.series.Map())
				}
			}
		}
	}
	for _, found := range row.FindAllStringSubmatch(string(readFile(t, "docs", guide)), -1) {
		names := regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(found[2], -1)
		labels := map[string]string{}
		for _, name := range names {
			labels[name[1]] = ""
		}
		described[found[1]] = listLabels(labels)
	}
	if diff := cmp.Diff(exported, described); diff != "" {
		t.Errorf("-exported +described:\n%s", diff)
	}
}

// listLabels returns the names of labels, except for those that Prometheus or the library adds to all metrics.
func listLabels(set map[string]string) []string {
	out := []string{}
	for name := range set {
		if !slices.Contains([]string{"__name__", "job", "instance", "le", "deployer_type"}, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func TestRunbooks(t *testing.T) {
	text := string(readFile(t, "docs", guide))
	for _, alert := range readAlerts(t) {
		t.Run(alert.Alert+" has a severity, a summary and a runbook [M5]", func(t *testing.T) {
			if !slices.Contains([]string{"warning", "critical"}, alert.Labels["severity"]) || alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
				t.Errorf("labels %v, annotations %v", alert.Labels, alert.Annotations)
			}
			want := "https://github.com/deployerkit/deployerkit/blob/main/docs/" + guide + "#" + strings.ToLower(alert.Alert)
			if got := alert.Annotations["runbook_url"]; got != want {
				t.Errorf("the runbook is %s, want %s", got, want)
			}
			_, section, found := strings.Cut(text, "\n### "+alert.Alert+"\n")
			section, _, _ = strings.Cut(section, "\n#")
			for _, part := range []string{"**Meaning.**", "**How to look.**", "**What to do.**"} {
				if !strings.Contains(section, part) {
					t.Errorf("%s has no section with %s (found: %t)", guide, part, found)
				}
			}
		})
	}
	t.Run("the guide contains no other runbook [M5]", func(t *testing.T) {
		for _, found := range regexp.MustCompile(`(?m)^### (Deployer\w+)$`).FindAllStringSubmatch(text, -1) {
			if causes[found[1]] == nil {
				t.Errorf("there is no alert %s", found[1])
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// root is the path of the repository, relative to this package.
const root = "../.."

var queryParser = parser.NewParser(parser.Options{})

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	must(t, err)
	return content
}

// readAlerts returns the alerts that the charts install. Prometheus validates them.
func readAlerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(readFile(t, "internal", "chart", "monitoring", "rules.yaml"), false, model.UTF8Validation, queryParser, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Fatal(err)
	}
	var out []rulefmt.Rule
	for _, group := range groups.Groups {
		out = append(out, group.Rules...)
	}
	return out
}

// newAlert returns an alert without a history.
func newAlert(t *testing.T, r rulefmt.Rule) *rules.AlertingRule {
	t.Helper()
	expr, err := queryParser.ParseExpr(r.Expr)
	must(t, err)
	return rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
}

// dashboard contains the fields of a Grafana dashboard that the tests read.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  source `json:"datasource"`
	GridPos     struct{ H, W, X, Y int }
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID        string `json:"refId"`
		Datasource   source `json:"datasource"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	must(t, json.Unmarshal(readFile(t, "internal", "chart", "monitoring", "dashboard.json"), &d))
	return d
}

// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"slices"
	"testing"
)

// units are the units of Grafana that the dashboard uses.
var units = []string{"short", "s", "ops", "reqps", "percentunit", "bytes"}

func TestDashboard(t *testing.T) {
	t.Run("the dashboard lets the user select the data source, the job and the type [M6]", func(t *testing.T) {
		var got []string
		for _, v := range readDashboard(t).Templating.List {
			got = append(got, v.Name+" "+v.Type)
			if v.Name == "datasource" && v.Query != "prometheus" {
				t.Errorf("the data sources are of type %v", v.Query)
			}
		}
		if !slices.Equal(got, []string{"datasource datasource", "job query", "deployer_type query"}) {
			t.Errorf("variables: %q", got)
		}
	})
	t.Run("each panel has a title, a description, a unit and the selected data source [M6]", func(t *testing.T) {
		ids := map[int]bool{}
		for _, p := range readDashboard(t).Panels {
			if p.ID == 0 || ids[p.ID] || p.Title == "" {
				t.Errorf("panel %d %q has no title, or its ID is not unique", p.ID, p.Title)
			}
			ids[p.ID] = true
			if p.Type != "row" {
				checkPanel(t, p)
			}
		}
		if len(ids) < 20 {
			t.Errorf("there are %d panels", len(ids))
		}
	})
	t.Run("panels do not overlap [M6]", func(t *testing.T) {
		cells := map[[2]int]string{}
		for _, p := range readDashboard(t).Panels {
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s overlaps %s", p.Title, other)
					}
					cells[[2]int{x, y}] = p.Title
				}
			}
		}
	})
}

func checkPanel(t *testing.T, p panel) {
	t.Helper()
	selected := source{Type: "prometheus", UID: "${datasource}"}
	if p.Description == "" || !slices.Contains(units, p.FieldConfig.Defaults.Unit) || p.Datasource != selected || len(p.Targets) == 0 {
		t.Errorf("%s: description %q, unit %q, data source %v, %d queries", p.Title, p.Description, p.FieldConfig.Defaults.Unit, p.Datasource, len(p.Targets))
	}
	refs := map[string]bool{}
	for _, query := range p.Targets {
		if refs[query.RefID] || query.RefID == "" || query.LegendFormat == "" || query.Datasource != selected {
			t.Errorf("%s: query %+v", p.Title, query)
		}
		refs[query.RefID] = true
	}
}

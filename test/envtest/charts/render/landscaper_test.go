// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

// readLandscaperValues returns the values files of Landscaper's charts. The keys have the form "chart version".
func readLandscaperValues(t *testing.T) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/landscaper.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, file := range archive.Files {
		out[file.Name] = string(file.Data)
	}
	return out
}

func TestValuesOfLandscaperCharts(t *testing.T) {
	for name, values := range readLandscaperValues(t) {
		id := " [O2]"
		if name == "landscaper-service" {
			id = " [O3, O51]"
		}
		t.Run(name+id, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				if strings.HasSuffix(name, "-service") && chart == mockChart || strings.HasPrefix(name, helmChart) && chart != helmChart {
					return
				}
				r := render(t, chart, values)
				require(t, one(t, r, deployment), container+"name", chart)
				if name == "landscaper-service" {
					if one(t, r, deployment).GetName() != "manifest-ns-manifest-deployer" || strings.Contains(getConfiguration(t, r), "manifest-ns") {
						t.Errorf("the configuration is\n%s", getConfiguration(t, r))
					}
					if len(all(r, "HorizontalPodAutoscaler")) > 0 || !slices.Contains(args(t, r), "-v=info") {
						t.Error("wrong arguments")
					}
				}
			})
		})
	}
	if found, err := helm.RunLint(helm.FindChart(manifestChart), readLandscaperValues(t)["landscaper-service"]); err != nil || len(found) > 0 {
		t.Errorf("%v, %q", err, found)
	}
}

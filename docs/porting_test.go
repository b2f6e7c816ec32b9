// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"strings"
	"testing"
)

// deployerImports lists the packages outside the API module that Landscaper's deployers (helm, manifest, container,
// mock) import from github.com/gardener/landscaper v0.127.0, except the packages of the deployers themselves.
var deployerImports = []string{
	"controller-utils/pkg/kubernetes",
	"controller-utils/pkg/logging",
	"controller-utils/pkg/logging/constants",
	"pkg/api",
	"pkg/components/model",
	"pkg/components/model/tar",
	"pkg/components/ocmlib",
	"pkg/components/registries",
	"pkg/deployer/lib",
	"pkg/deployer/lib/cmd",
	"pkg/deployer/lib/continuousreconcile",
	"pkg/deployer/lib/extension",
	"pkg/deployer/lib/interruption",
	"pkg/deployer/lib/readinesscheck",
	"pkg/deployer/lib/resourcemanager",
	"pkg/deployer/lib/timeout",
	"pkg/deployerlegacy",
	"pkg/landscaper/blueprints",
	"pkg/landscaper/dataobjects/jsonpath",
	"pkg/utils",
	"pkg/utils/read_write_layer",
	"pkg/version",
}

func TestPortingImports(t *testing.T) {
	t.Run("the porting guide has a row for each import of Landscaper's deployers [F84]", func(t *testing.T) {
		_, table, found := strings.Cut(read(t, "porting.md"), "### Imports\n")
		if !found {
			t.Fatal("the guide has no section for imports")
		}
		table, _, _ = strings.Cut(table, "\n### ")
		listed := map[string]bool{}
		for line := range strings.Lines(table) {
			before, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
			for i, part := range strings.Split(before, "`") {
				if i%2 == 1 {
					listed[part] = true
				}
			}
		}
		for _, name := range deployerImports {
			if !listed[name] {
				t.Errorf("the table of imports has no row for %s", name)
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

func TestListChangedValues(t *testing.T) {
	files, err := chart.Unpack(charttest.Files{}.Archive(), chart.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := release.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	values := func(raw string) map[string]any {
		out, err := release.DecodeValues([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"equal numbers and another order of keys [Ex3] [Ex34]": {`{"a": 1, "b": {"c": 12345678901234567890}}`, `{"b": {"c": 12345678901234567890}, "a": 1.0}`, nil},
		"names paths, but no values [Ex25] [Ex34]": {
			`{"a": {"changed": "s3cr3t", "removed": "s3cr3t", "same": true}, "list": [1, 2], "table": {"x": 1}}`,
			`{"a": {"changed": "an0ther", "added": null, "same": true}, "list": [1, 3], "table": 1, "b": 1}`,
			[]string{"a.added added", "a.changed changed", "a.removed removed", "b added", "list changed", "table changed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := release.Input{Chart: loaded, Name: "web", Namespace: "shop", Revision: 1, Values: values(tc.before)}
			rendered, err := release.NewRenderer(release.Limits{}).Render(t.Context(), "key", in)
			if err != nil {
				t.Fatal(err)
			}
			got := release.NewRecord(in, rendered, false).ListChangedValues(values(tc.after))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"archive/tar"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

func TestUnpack(t *testing.T) {
	t.Run("unpacks the archives of subcharts", func(t *testing.T) {
		sub := charttest.Files{"templates/a.yaml": "a"}.Archive()
		files, err := chart.Unpack(charttest.Files{"charts/sub-1.0.0.tgz": string(sub), "charts/_skipped.tgz": "x", "values.yaml": "\xEF\xBB\xBFb: c"}.Archive(), chart.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, file := range files {
			got[file.Name] = string(file.Data)
		}
		want := map[string]string{
			"Chart.yaml":                        "apiVersion: v2\nname: test\nversion: 1.0.0\n",
			"charts/_skipped.tgz":               "x",
			"charts/sub-1.0.0/Chart.yaml":       "apiVersion: v2\nname: test\nversion: 1.0.0\n",
			"charts/sub-1.0.0/templates/a.yaml": "a",
			"values.yaml":                       "b: c",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unexpected files (-want +got):\n%s", diff)
		}
	})
	nested := charttest.Files{}.Archive()
	for range 10 {
		nested = charttest.Files{"charts/sub.tgz": string(nested)}.Archive()
	}
	entry := func(kind byte, name, link string) []byte {
		return charttest.Tar([]tar.Header{{Name: name, Typeflag: kind, Linkname: link}}, func(string) string { return "x" })
	}
	for _, test := range []struct {
		name   string
		data   []byte
		limits chart.Limits
		want   string
	}{
		{name: "rejects an archive that is too large [Ex28]", data: make([]byte, 11), limits: chart.Limits{Archive: 10}, want: "the chart archive has 11 bytes, more than the limit of 10"},
		{name: "rejects files that are too large [Ex28]", data: charttest.Files{"a": strings.Repeat("a", 1000)}.Archive(), limits: chart.Limits{Unpacked: 1000}, want: "the files of the chart have more than 1000 bytes"},
		{name: "rejects a bomb in a subchart [Ex28]", data: charttest.Files{"charts/a.tgz": string(charttest.Files{"a": strings.Repeat("a", 1<<20)}.Archive())}.Archive(), limits: chart.Limits{Unpacked: 1 << 20}, want: "the files of the chart have more than 1048576 bytes"},
		{name: "rejects too many files [Ex28]", data: charttest.Files{"a": "", "b": ""}.Archive(), limits: chart.Limits{Files: 2}, want: "the chart contains more than 2 files"},
		{name: "rejects archives that contain each other too often [Ex28]", data: nested, want: "charts/sub/charts/sub/charts/sub/charts/sub/charts/sub/charts/sub/charts/sub/charts/sub/charts/sub: more than 8 archives contain each other"},
		{name: "rejects a symbolic link [Ex27]", data: entry(tar.TypeSymlink, "test/a", "/etc/passwd"), want: `the chart archive contains "test/a", which is a link or a special file`},
		{name: "rejects a hard link [Ex27]", data: entry(tar.TypeLink, "test/a", "/etc/passwd"), want: `the chart archive contains "test/a", which is a link or a special file`},
		{name: "rejects a path outside the chart [Ex27]", data: entry(tar.TypeReg, "test/../../a", ""), want: `the chart archive contains "test/../../a": the path leads out of the chart`},
		{name: "rejects a path outside the chart with backslashes [Ex27]", data: entry(tar.TypeReg, `test\..\..\a`, ""), want: `the chart archive contains "test\\..\\..\\a": the path leads out of the chart`},
		{name: "rejects an absolute path [Ex27]", data: entry(tar.TypeReg, "/etc/a", ""), want: `the chart archive contains "/etc/a": the path is absolute`},
		{name: "rejects a drive [Ex27]", data: entry(tar.TypeReg, "c:/a", ""), want: `the chart archive contains "c:/a": the path is absolute`},
		{name: "rejects a file without a directory", data: entry(tar.TypeReg, "a", ""), want: `the chart archive contains "a": the file is not in the directory of the chart`},
		{name: "rejects an archive without files", data: entry(tar.TypeDir, "test/", ""), want: "the chart archive contains no files"},
		{name: "rejects data that is not compressed", data: []byte("apiVersion: v2"), want: "the chart archive is not a gzip file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := chart.Unpack(test.data, test.limits)
			final, ok := errors.AsType[*chart.Error](err)
			if !ok || !final.Final {
				t.Fatalf("the error is %v, want a final *chart.Error", err)
			}
			if final.Error() != test.want {
				t.Errorf("the error is %q, want %q", final, test.want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

// Chart is a loaded chart. Rendering modifies it, so load it again before each rendering.
type Chart struct {
	chart *chartv2.Chart
}

// Load interprets the files of a chart and of its subcharts. It returns an *Error with ReasonChart if the chart is
// invalid, or if it is a library chart, which cannot be installed.
func Load(files []chart.File) (c *Chart, err error) {
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, newError(ReasonChart, "the chart cannot be loaded: %v", r)
		}
	}()
	buffered := make([]*archive.BufferedFile, 0, len(files))
	for _, file := range files {
		buffered = append(buffered, &archive.BufferedFile{Name: file.Name, Data: file.Data})
	}
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, newError(ReasonChart, "the chart cannot be loaded: %v", err)
	}
	if loaded.Metadata.Type == "library" {
		return nil, newError(ReasonChart, "the chart %s is a library chart, which cannot be installed", loaded.Name())
	}
	return &Chart{chart: loaded}, nil
}

// Name returns the name of the chart.
func (c *Chart) Name() string { return c.chart.Name() }

// Version returns the version of the chart.
func (c *Chart) Version() string { return c.chart.Metadata.Version }

// String returns the name and the version.
func (c *Chart) String() string { return fmt.Sprintf("%s %s", c.Name(), c.Version()) }

// ValidateName returns an error if a name is not valid for a release.
func ValidateName(name string) error { return chartutil.ValidateReleaseName(name) }

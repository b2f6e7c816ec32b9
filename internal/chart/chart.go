// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

// Version is the version of the charts in the repository. The charts install images with the tag "v" + Version.
const Version = "0.1.0"

//go:embed all:templates
var templates embed.FS

// monitoring contains the dashboard and the alerts, which are the same in all charts.
//
//go:embed monitoring
var monitoring embed.FS

// Chart describes the chart of a deployer.
type Chart struct {
	Name        string // name of the chart and of the container; part of the names of all objects
	Description string
	Repository  string // repository of the image
	Config      string // apiVersion of the configuration file
	Rights      string // content of the deployer's file rbac.yaml
	Version     string // version of the chart, without v
	Commit      string // commit from which a published chart is built; empty for the charts in the repository

	Targets bool // the deployer applies objects to Targets, and has values for them
	Helm    bool // the chart is that of the Helm deployer, which has values for charts
	// WorkersInFile is true if Landscaper's Go type for the configuration file has a field for the number of workers.
	WorkersInFile bool
	// Ours is true for the charts of this repository.
	Ours bool
}

// NewManifestChart returns the chart of the manifest deployer.
func NewManifestChart(rights string) Chart {
	return Chart{
		Name: "manifest-deployer", Description: "Applies the manifests of Landscaper's deploy items to their targets",
		Repository: "ghcr.io/deployerkit/manifest-deployer", Config: "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
		Rights: rights, Version: Version, Targets: true, WorkersInFile: true, Ours: true,
	}
}

// NewHelmChart returns the chart of the Helm deployer.
func NewHelmChart(rights string) Chart {
	return Chart{
		Name: "helm-deployer", Description: "Deploys the Helm charts of Landscaper's deploy items to their targets",
		Repository: "ghcr.io/deployerkit/helm-deployer", Config: "helm.deployer.landscaper.gardener.cloud/v1alpha1",
		Rights: rights, Version: Version, Targets: true, Helm: true, WorkersInFile: true, Ours: true,
	}
}

// NewCharts returns the functions that create the charts of this repository. The keys are the names of the directories
// in deployers.
func NewCharts() map[string]func(rights string) Chart {
	return map[string]func(rights string) Chart{"helm": NewHelmChart, "manifest": NewManifestChart, "mock": NewMockChart}
}

// Title returns the name of the deployer in texts.
func (c *Chart) Title() string {
	if c.Helm {
		return "Helm deployer"
	}
	return strings.ReplaceAll(c.Name, "-", " ")
}

// Requests returns the resources that the container requests by default, as YAML. For each deployer, they are those of
// Landscaper's chart.
func (c *Chart) Requests() string {
	if c.Helm {
		return "{requests: {cpu: 300m, memory: 300Mi}}"
	}
	return "{requests: {cpu: 100m, memory: 100Mi}}"
}

// NewMockChart returns the chart of the mock deployer.
func NewMockChart(rights string) Chart {
	return Chart{
		Name: "mock-deployer", Description: "Sets the status and the export of deploy items as their configuration specifies, for tests",
		Repository: "ghcr.io/deployerkit/mock-deployer", Config: "mock.deployer.landscaper.gardener.cloud/v1alpha1",
		Rights: rights, Version: Version, Ours: true,
	}
}

// Table returns the table of chart values for the README.
func (c *Chart) Table() string {
	var b strings.Builder
	b.WriteString("| Value | Default | Meaning |\n|---|---|---|\n")
	for _, v := range c.values() {
		def := c.defaultOf(v)
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.path, def, strings.ReplaceAll(v.doc, "|", `\|`))
	}
	return b.String()
}

// RenderFiles returns the files of the chart. It maps the path of each file to its content.
func (c *Chart) RenderFiles() (map[string]string, error) {
	schema, err := c.renderSchema()
	if err != nil {
		return nil, err
	}
	files := map[string]string{"rbac.yaml": c.Rights, "values.yaml": c.renderValues(), "values.schema.json": schema}
	for _, name := range []string{"monitoring/dashboard.json", "monitoring/rules.yaml"} {
		content, err := monitoring.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[name] = string(content)
	}
	entries, err := templates.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		to := entry.Name()
		if to != "Chart.yaml" && to != "README.md" {
			to = path.Join("templates", to)
		}
		if files[to], err = Fill(templates, path.Join("templates", entry.Name()), c); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Fill executes the template in a file and returns the output. The delimiters of the template are [[ and ]]. If the
// template uses a map key that does not exist, Fill returns an error.
func Fill(files fs.FS, name string, data any) (string, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return "", err
	}
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return "", err
	}
	return out.String(), nil
}

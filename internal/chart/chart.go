// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"strings"
	"text/template"
)

// Version is the version of the charts and of the programs that they install.
const Version = "0.1.0"

//go:embed all:templates
var templates embed.FS

// Chart describes the chart of a deployer.
type Chart struct {
	Name        string // of the chart, the container and, as a part, of all objects
	Description string
	Repository  string // of the image
	Config      string // apiVersion of the configuration file
	Rights      string // content of the file rbac.yaml of the deployer

	Manifest bool // has the values of the manifest deployer
	// WorkersInFile is set if Landscaper's type of the configuration file has the number of workers.
	WorkersInFile bool
	// Ours is set for the charts of this repository.
	Ours bool
}

// Manifest returns the chart of the manifest deployer.
func Manifest(rights string) Chart {
	return Chart{
		Name: "manifest-deployer", Description: "Brings the manifests of Landscaper's deploy items to their targets",
		Repository: "ghcr.io/deployerkit/manifest-deployer", Config: "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
		Rights: rights, Manifest: true, WorkersInFile: true, Ours: true,
	}
}

// Mock returns the chart of the mock deployer.
func Mock(rights string) Chart {
	return Chart{
		Name: "mock-deployer", Description: "Does to Landscaper's deploy items what their configuration says, for tests",
		Repository: "ghcr.io/deployerkit/mock-deployer", Config: "mock.deployer.landscaper.gardener.cloud/v1alpha1",
		Rights: rights, Ours: true,
	}
}

// Version is the version of the chart.
func (c *Chart) Version() string { return Version }

// Table is the table of values in the README.
func (c *Chart) Table() string {
	var b strings.Builder
	b.WriteString("| Value | Default | |\n|---|---|---|\n")
	for _, v := range c.values() {
		def := v.def
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.path, def, strings.ReplaceAll(v.doc, "|", `\|`))
	}
	return b.String()
}

// Files returns the content of each file of the chart by its path.
func (c *Chart) Files() (map[string]string, error) {
	schema, err := c.schema()
	if err != nil {
		return nil, err
	}
	files := map[string]string{"rbac.yaml": c.Rights, "values.yaml": c.defaults(), "values.schema.json": schema}
	entries, err := templates.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		to := entry.Name()
		if to != "Chart.yaml" && to != "README.md" {
			to = path.Join("templates", to)
		}
		if files[to], err = c.fill(path.Join("templates", entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// fill executes a template.
func (c *Chart) fill(name string) (string, error) {
	text, err := templates.ReadFile(name)
	if err != nil {
		return "", err
	}
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, c); err != nil {
		return "", err
	}
	return out.String(), nil
}

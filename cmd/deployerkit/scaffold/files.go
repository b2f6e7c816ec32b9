// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployerkit/deployerkit/internal/chart"
)

const (
	// root is the directory of the templates.
	root = "templates"
	// suffix is the suffix of the template files. Without it, the go command would try to compile the templates.
	suffix = ".tmpl"
)

//go:embed all:templates
var templates embed.FS

// render returns the files of the project. It maps the path of each file to its content.
func (p *project) render() (map[string]string, error) {
	files := map[string]string{}
	for _, dir := range p.templateDirs() {
		err := fs.WalkDir(templates, dir, func(from string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			to := strings.TrimSuffix(strings.TrimPrefix(from, dir+"/"), suffix)
			files[to], err = chart.Fill(templates, from, p)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	files["go.sum"] = p.sums
	if err := p.addChart(files); err != nil {
		return nil, err
	}
	if p.License == "none" {
		return files, nil
	}
	var err error
	files["LICENSE"], err = chart.Fill(templates, path.Join(root, "licenses", p.License+suffix), p)
	return files, err
}

// addChart adds the Helm chart. The chart grants the rights that rbac.yaml lists.
func (p *project) addChart(files map[string]string) error {
	c := chart.Chart{
		Name: p.Deployer, Description: "Deploys Landscaper's deploy items of type " + p.Type, Repository: "registry.example/" + p.Deployer,
		Config: p.Group + "/v1alpha1", Rights: files["rbac.yaml"], Version: chart.Version, WorkersInFile: true,
	}
	made, err := c.RenderFiles()
	for name, content := range made {
		files[path.Join("chart", name)] = content
	}
	return err
}

// write creates the directory if necessary, and writes the files to it. If one of the files already exists, it writes
// none of them.
func write(dir string, files map[string]string) error {
	paths := slices.Sorted(maps.Keys(files))
	var existing []string
	for _, name := range paths {
		_, err := os.Lstat(filepath.Join(dir, name))
		switch {
		case err == nil:
			existing = append(existing, name)
		case !errors.Is(err, fs.ErrNotExist):
			return usageError{err}
		}
	}
	if len(existing) > 0 {
		return usageError{fmt.Errorf("%s already contains %s", dir, strings.Join(existing, ", "))}
	}
	for _, name := range paths {
		if err := create(filepath.Join(dir, name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// create creates a file and, if necessary, its directories. It returns an error if the file already exists.
func create(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Close())
}

// SPDX-License-Identifier: Apache-2.0

// Command push builds the packages of the charts with a given version, and pushes them to a registry:
//
//	go run ./push -commit "$(git rev-parse HEAD)" -created "$(git log -1 --format=%ct)" registry.example/deployers v0.1.0 dist
//
// A chart of version v0.1.0 becomes charts/NAME:0.1.0 in the registry, and installs the image NAME:v0.1.0 from there.
// The command also writes the packages to the directory. The same arguments always result in the same packages.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/deployerkit/deployerkit/internal/chart"
	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

func main() {
	commit := flag.String("commit", "", "the commit of the charts")
	created := flag.Int64("created", 0, "the time of the commit, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 3 || *commit == "" || *created == 0 {
		fmt.Fprintln(os.Stderr, "push: want -commit, -created, a registry, a version and a directory")
		os.Exit(2)
	}
	p := publication{registry: flag.Arg(0), version: flag.Arg(1), dir: flag.Arg(2), commit: *commit, created: time.Unix(*created, 0).UTC()}
	for kind, describe := range chart.NewCharts() {
		if err := p.push(kind, describe); err != nil {
			fmt.Fprintln(os.Stderr, "push:", err)
			os.Exit(1)
		}
	}
}

// publication contains the arguments of the command.
type publication struct {
	registry, version, dir, commit string
	created                        time.Time
}

// push builds the package of the chart for one kind of deployer, and pushes the package.
func (p *publication) push(kind string, describe func(rights string) chart.Chart) error {
	rights, err := os.ReadFile(filepath.Join(helm.Root(), "deployers", kind, "rbac.yaml"))
	if err != nil {
		return err
	}
	c := describe(string(rights))
	path, err := p.writePackage(&c)
	if err != nil {
		return fmt.Errorf("package %s: %w", c.Name, err)
	}
	ref := p.registry + "/charts/" + c.Name + ":" + c.Version
	if err := helm.Push(path, ref, p.created); err != nil {
		return err
	}
	fmt.Println("Pushed:", ref)
	return nil
}

// writePackage writes the package of a chart and returns the path of the package. The files in the package have the
// time of the commit as their modification time.
func (p *publication) writePackage(c *chart.Chart) (string, error) {
	version, found := strings.CutPrefix(p.version, "v")
	if !found {
		return "", fmt.Errorf("version %s does not begin with v", p.version)
	}
	c.Version, c.Commit, c.Repository = version, p.commit, p.registry+"/"+c.Name
	files, err := c.RenderFiles()
	if err != nil {
		return "", err
	}
	var buffered []*archive.BufferedFile
	for name, content := range files {
		buffered = append(buffered, &archive.BufferedFile{Name: name, ModTime: p.created, Data: []byte(content)})
	}
	// The order of the files in the package is the order of this list.
	slices.SortFunc(buffered, func(a, b *archive.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return "", err
	}
	return chartutil.Save(loaded, p.dir)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// publicChart is a chart that a public Go module contains. No such chart is part of this repository.
type publicChart struct {
	name   string
	module string // with its version
	dir    string // in the module
	values map[string]any
	more   itemConfig
	// objects is the minimum number of objects that the chart creates with these values.
	objects int
}

// publicCharts are the charts that a spec installs, in this order. The objects of kyverno-policies need the definitions of
// kyverno.
var publicCharts = []publicChart{
	{name: "metrics-server", module: "sigs.k8s.io/metrics-server@v0.7.2", dir: "charts/metrics-server", objects: 9},
	{name: "external-dns", module: "sigs.k8s.io/external-dns@v0.15.1", dir: "charts/external-dns", objects: 5},
	{
		name: "cert-manager", module: "github.com/cert-manager/cert-manager@v1.16.3", dir: "deploy/charts/cert-manager", objects: 40,
		// No Pod runs here, so a hook that checks the API of cert-manager would wait for a Job.
		values: map[string]any{"startupapicheck": map[string]any{"enabled": false}},
	},
	{name: "kueue", module: "sigs.k8s.io/kueue@v0.10.1", dir: "charts/kueue", objects: 30},
	{name: "kyverno", module: "github.com/kyverno/kyverno@v1.13.2", dir: "charts/kyverno", objects: 55, more: itemConfig{
		"deployerkit": map[string]any{"disableHooks": true},
	}},
	{name: "kyverno-policies", module: "github.com/kyverno/kyverno@v1.13.2", dir: "charts/kyverno-policies", objects: 10},
}

// download returns the directory of a module. The Go module proxy serves the module, and Go checks its sum.
func download(ctx context.Context, module string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module) //nolint:gosec // one of the modules above
	cmd.Dir = GinkgoT().TempDir()
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", module, out)
	var found struct{ Dir string }
	Expect(json.Unmarshal(out, &found)).To(Succeed())
	return found.Dir
}

// pack returns the archive of a chart in a directory. A release of a project may fill in a file Chart.template.yaml, which
// is used as it is.
func pack(name, dir string) []byte {
	GinkgoHelper()
	content := map[string]string{}
	var entries []tar.Header
	Expect(filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(file) //nolint:gosec // of the module
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if inside = filepath.ToSlash(inside); inside == "Chart.template.yaml" {
			inside = "Chart.yaml"
		}
		inside = path.Join(name, inside)
		content[inside] = string(data)
		entries = append(entries, tar.Header{Name: inside, Typeflag: tar.TypeReg})
		return nil
	})).To(Succeed())
	return charttest.Tar(entries, func(name string) string { return content[name] })
}

var _ = Describe("Public charts", func() {
	It("are installed, do not change without a reason, and are uninstalled [Ex3] [E31]", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, false)
		w.start(s.flag(GinkgoTB(), writeFile(s.ca())))
		for _, one := range publicCharts {
			By("installing " + one.name)
			dir := filepath.Join(download(ctx, one.module), filepath.FromSlash(one.dir))
			s.push(GinkgoTB(), "charts/"+one.name, "1", pack(one.name, dir), nil)
			more := itemConfig{
				"name": one.name, "values": one.values,
				"readinessChecks": map[string]any{"disableDefault": true}, // no Pod runs here
			}
			maps.Copy(more, one.more)
			di := w.deploy(ctx, one.name, w.config(ref(s.host()+"/charts/"+one.name+":1"), more))
			Expect(di).To(beSucceeded(), one.name)
			status, last, err := helm.DecodeStatus(di)
			Expect(err).NotTo(HaveOccurred())
			Expect(last.Chart).To(Equal(one.name))
			Expect(len(status.Inventory.Entries)).To(BeNumerically(">=", one.objects), one.name)
		}
		for _, one := range publicCharts {
			Expect(w.again(ctx, one.name)).To(beSucceeded(), one.name)
			Expect(w.history(ctx, one.name)).To(Equal([]string{"1 deployed"}), one.name)
		}
		names := []string{}
		for _, one := range publicCharts {
			names = append([]string{one.name}, names...)
		}
		By("uninstalling " + strings.Join(names, ", "))
		deletion, cancel := context.WithTimeout(ctx, 5*patience) // the API server may take minutes to delete definitions
		defer cancel()
		for _, name := range names {
			Expect(w.Delete(deletion, w.key(name))).To(Succeed(), name)
		}
		for _, name := range names {
			Expect(w.history(ctx, name)).To(BeEmpty(), name)
		}
	}, SpecTimeout(8*patience))
})

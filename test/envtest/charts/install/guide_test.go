// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

var _ = Describe("the guide to installing", func() {
	var blocks []string
	BeforeEach(func() {
		text, err := os.ReadFile(filepath.Join(helm.Root(), "docs", "installing.md"))
		Expect(err).NotTo(HaveOccurred())
		blocks = nil
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			blocks = append(blocks, block[1])
		}
		Expect(len(blocks)).To(BeNumerically(">=", 3))
	})

	It("begins with values that install a deployer, which works", func(ctx SpecContext) {
		r := newRelease(ctx, "manifest-deployer", helm.Chart("manifest-deployer"))
		r.install(ctx, r.values(blocks[0]))
		Expect(r.deployment(ctx).Name).To(Equal("manifest-deployer"))
		p := r.start(ctx)
		p.awaitReady()
		i := itemsOf(r)
		i.target(ctx, "cluster", "")
		i.life(ctx, "cluster")
		p.stop()
	})

	It("switches from Landscaper's deployer, whose items and objects stay, and back", func(ctx SpecContext) {
		r := newRelease(ctx, "rel", landscapersChart("v0.152"))
		theirs, ours := r.dir, helm.Chart("manifest-deployer")
		r.install(ctx, "deployer: {identity: me}")
		r.dir = ours
		r.upgrade(ctx, r.values("deployer: {identity: me, updateStrategy: update}"))
		p := r.start(ctx)
		p.awaitReady()
		i := itemsOf(r)
		i.target(ctx, "cluster", "")
		item := i.deploy(ctx, "item", "cluster", i.manifests("1", "kept"))
		i.succeed(ctx, item)
		p.stop()
		r.dir = theirs
		r.upgrade(ctx, "deployer: {identity: me}")
		Expect(i.value(ctx, "kept")).To(Equal("1"))
		r.dir = ours
		r.upgrade(ctx, r.values("deployer: {identity: me, updateStrategy: update}"))
		p = r.start(ctx)
		p.awaitReady()
		i.change(ctx, item, i.manifests("2", "kept"))
		Expect(i.Delete(ctx, item)).To(Succeed())
		p.stop()
	})

	It("has values for private networks that the chart and an API server take", func(ctx SpecContext) {
		for _, block := range blocks[1:] {
			if !strings.Contains(block, "caBundle") {
				continue
			}
			r := newRelease(ctx, "rel", helm.Chart("manifest-deployer"))
			r.install(ctx, block)
			Expect(r.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(ContainSubstring("@sha256:"))
		}
	})

	It("has commands that Helm understands, with values of the chart", func() {
		text, err := os.ReadFile(filepath.Join(helm.Root(), "docs", "installing.md"))
		Expect(err).NotTo(HaveOccurred())
		sets := regexp.MustCompile(`--set ([^\s]+)`).FindAllStringSubmatch(string(text), -1)
		Expect(sets).NotTo(BeEmpty())
		for _, set := range sets {
			values := ""
			for assignment := range strings.SplitSeq(set[1], ",") {
				path, value, _ := strings.Cut(assignment, "=")
				parts := strings.Split(path, ".")
				one := "{" + strings.Join(parts, ": {") + ": " + value + strings.Repeat("}", len(parts))
				values = merge(values, one)
			}
			_, err := helm.Render(helm.Chart("manifest-deployer"), "rel", "ls-system", values)
			Expect(err).NotTo(HaveOccurred(), values)
		}
	})
})

// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/tools/txtar"
	"helm.sh/helm/v4/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

// guide maps the titles of the sections of docs/installing.md to the texts of the sections. The key "" stands for the
// text before the first section.
type guide map[string]string

func readGuide() guide {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(helm.Root(), "docs", "installing.md"))
	Expect(err).NotTo(HaveOccurred())
	out, title := guide{}, ""
	for line := range strings.Lines(string(text)) {
		if next, found := strings.CutPrefix(line, "## "); found {
			title = strings.TrimSpace(next)
		}
		out[title] += line
	}
	return out
}

// values returns the chart values that a section shows.
func (g guide) values(section string) string {
	GinkgoHelper()
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(g[section])
	Expect(found).NotTo(BeNil(), section)
	return found[1]
}

// command searches a section for the command that begins with the given words, and returns the arguments of this
// command.
func (g guide) command(section, words string) []string {
	GinkgoHelper()
	text := strings.ReplaceAll(g[section], "\\\n", "")
	found := regexp.MustCompile(`(?m)^` + words + ` .*$`).FindString(text)
	Expect(found).NotTo(BeEmpty(), "%s: %s", section, words)
	return strings.Fields(found)
}

// set returns the chart values that a command sets with --set.
func set(command []string) string {
	GinkgoHelper()
	for n, arg := range command {
		if arg == "--set" {
			values, err := strvals.Parse(command[n+1])
			Expect(err).NotTo(HaveOccurred())
			raw, err := json.Marshal(values)
			Expect(err).NotTo(HaveOccurred())
			return string(raw)
		}
	}
	return "{}"
}

// getOption returns the value of an option of a command.
func getOption(command []string, name string) string {
	for n, arg := range command {
		if arg == name {
			return command[n+1]
		}
	}
	return ""
}

var _ = Describe("Installation guide", func() {
	var g guide
	BeforeEach(func() { g = readGuide() })

	It("the charts can be pushed, pulled, installed and removed, and the deployer works meanwhile", func(ctx SpecContext) {
		server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		DeferCleanup(server.Close)
		address := strings.TrimPrefix(server.URL, "http://") + "/deployers"
		push := g.command("", "make image chart")
		push = append([]string{"make", "chart", "DIR=" + GinkgoT().TempDir()}, push[3:]...)
		dir := GinkgoT().TempDir()
		onLoopback := func(text string) string { return strings.ReplaceAll(text, "registry.example/deployers", address) }
		cmd := exec.CommandContext(ctx, "bash", "-c", onLoopback(strings.Join(push, " "))) //nolint:gosec // of the guide
		cmd.Dir = helm.Root()
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "output: %s", out)

		command := g.command("", "helm install")
		ref, isOCI := strings.CutPrefix(onLoopback(command[3]), "oci://")
		Expect(isOCI).To(BeTrue())
		pulled, err := helm.PullChart(ref+":"+getOption(command, "--version"), dir)
		Expect(err).NotTo(HaveOccurred())
		r := newRelease(ctx, command[2], pulled)
		r.install(ctx, r.values(g.values("")))
		Expect(r.deployment(ctx).Name).To(Equal("manifest-deployer"))
		Expect(r.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(Equal(address + "/manifest-deployer:v0.1.0"))
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		i.createTarget(ctx, "cluster", "")
		i.runLifecycle(ctx, "cluster")
		item := i.createItem(ctx, "stays", "cluster", i.newConfig("1", "stays"))
		i.waitUntilSucceeded(ctx, item)
		p.stop()
		Expect(r.remove()).To(Succeed())
		Expect(i.value(ctx, "stays")).To(Equal("1"))
		r.install(ctx, r.values(g.values("")))
		p = r.start(ctx)
		p.waitUntilReady()
		Expect(i.Delete(ctx, item)).To(Succeed())
		p.stop()
	})

	It("the switch from Landscaper's deployer and back keeps items and objects", func(ctx SpecContext) {
		r := newRelease(ctx, "rel", writeLandscaperChart("v0.152"))
		theirs, ours := r.dir, helm.FindChart("manifest-deployer")
		r.install(ctx, "deployer: {identity: me}")
		command := g.command("Replacing Landscaper's deployer", "helm upgrade")
		Expect(command[3]).To(Equal("charts/manifest-deployer"))
		given, err := r.cluster.Values(r.name)
		Expect(err).NotTo(HaveOccurred())
		values := merge(given, set(command))
		r.dir = ours
		r.upgrade(ctx, r.values(values))
		Expect(r.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/deployers/manifest-deployer:v0.1.0"))
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		i.createTarget(ctx, "cluster", "")
		item := i.createItem(ctx, "item", "cluster", i.newConfig("1", "kept"))
		i.waitUntilSucceeded(ctx, item)
		p.stop()
		r.dir = theirs
		r.upgrade(ctx, values)
		Expect(i.value(ctx, "kept")).To(Equal("1"))
		r.dir = ours
		r.upgrade(ctx, r.values(values))
		p = r.start(ctx)
		p.waitUntilReady()
		i.updateItem(ctx, item, i.newConfig("2", "kept"))
		Expect(i.Delete(ctx, item)).To(Succeed())
		p.stop()
	})

	It("the commands grant the rights in the cluster with the items, and create a token for the kubeconfig", func(ctx SpecContext) {
		const section = "Deploy items in another cluster"
		command := g.command(section, "helm install")
		rights := newRelease(ctx, command[2], helm.FindChart("manifest-deployer"))
		rights.install(ctx, set(command))
		admin, err := cp.WriteKubeconfig(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		args := g.command(section, "kubectl create token")[1:]
		for n := range args {
			args[n] = strings.ReplaceAll(args[n], "ls-system", rights.namespace)
		}
		token, err := exec.CommandContext(ctx, cp.Kubectl(), append(args, "--kubeconfig="+admin)...).Output() //nolint:gosec // of the guide
		Expect(err).NotTo(HaveOccurred())

		r := newRelease(ctx, "rel", helm.FindChart("manifest-deployer"))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "landscaper"}, Data: map[string][]byte{"kubeconfig": newKubeconfig(strings.TrimSpace(string(token)))}}
		Expect(c.Create(ctx, secret)).To(Succeed())
		r.install(ctx, r.values("deployer: {landscaperClusterKubeconfig: {secretRef: landscaper}}"))
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		i.createTarget(ctx, "cluster", "")
		i.runLifecycle(ctx, "cluster")
		p.stop()
	})

	It("deployers with disjoint selectors share a cluster, each with its own identity and leader", func(ctx SpecContext) {
		names := []string{"first", "second"}
		releases := map[string]*release{}
		for _, name := range names {
			r := newRelease(ctx, "manifest-deployer", helm.FindChart("manifest-deployer"))
			r.install(ctx, r.values(fmt.Sprintf(`{deployer: {identity: %[1]s, itemSelector: "spec=shared", targetSelector: [{targets: [{name: %[1]s}]}]}}`, name)))
			releases[name] = r
			r.start(ctx).waitUntilReady()
		}
		i := newItems(releases["first"])
		i.spec = "shared"
		for _, name := range names {
			i.createTarget(ctx, name, "")
			item := i.createItem(ctx, name, name, i.newConfig("1", name))
			i.waitUntilSucceeded(ctx, item)
			Expect(i.Get(ctx, item)).To(HaveField("Status.Deployer.Identity", name))
			Expect(i.Delete(ctx, item)).To(Succeed())
		}
		for _, r := range releases {
			Expect(listRefused(ctx, r.namespace, "manifest-deployer")).To(BeEmpty())
		}
	})

	It("the values for private networks allow targets behind a proxy and with another certificate authority [O56]", func(ctx SpecContext) {
		values := g.values("Private registries, authorities, proxies")
		proxy := startProxy("target.example:6443", cp.Config.Host)
		r := newRelease(ctx, "rel", helm.FindChart("manifest-deployer"))
		authorities := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "company-authorities"}, Data: map[string]string{"ca.crt": string(cp.Config.CAData)}}
		Expect(c.Create(ctx, authorities)).To(Succeed())
		r.install(ctx, r.values(merge(values, "proxy: {httpsProxy: "+proxy.URL+"}")))
		Expect(r.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(ContainSubstring("@sha256:"))
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		access, err := clientcmd.Load(cp.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		for _, cluster := range access.Clusters {
			cluster.Server, cluster.CertificateAuthorityData, cluster.TLSServerName = "https://target.example:6443", nil, "localhost"
		}
		kubeconfig, err := clientcmd.Write(*access)
		Expect(err).NotTo(HaveOccurred())
		config, err := json.Marshal(map[string]string{"kubeconfig": string(kubeconfig)})
		Expect(err).NotTo(HaveOccurred())
		i.createTarget(ctx, "behind", string(config))
		i.runLifecycle(ctx, "behind")
		p.stop()
		Expect(proxy.connections.Load()).To(BeNumerically(">", 0))
	})

	It("the values of landscaper-service work without Helm, as in Landscaper's helm deployer [O3, O61]", func(ctx SpecContext) {
		archive, err := txtar.ParseFile(filepath.Join("..", "render", "testdata", "landscaper.txtar"))
		Expect(err).NotTo(HaveOccurred())
		values := ""
		for _, file := range archive.Files {
			if file.Name == "landscaper-service" {
				values = string(file.Data)
			}
		}
		rights := newRelease(ctx, "rel", helm.FindChart("manifest-deployer"))
		rights.install(ctx, "rbac: {landscaperClusterOnly: true}")
		kubeconfig, err := json.Marshal(map[string]any{"deployer": map[string]any{"landscaperClusterKubeconfig": map[string]any{
			"kubeconfig": string(newKubeconfig(newConfigForAccount(ctx, rights.namespace, "rel-manifest-deployer").BearerToken)),
		}}})
		Expect(err).NotTo(HaveOccurred())
		r := newRelease(ctx, "manifest-ns", helm.FindChart("manifest-deployer"))
		rendered, err := helm.Render(r.dir, r.name, r.namespace, merge(r.values(values), string(kubeconfig)))
		Expect(err).NotTo(HaveOccurred())
		for _, object := range rendered.Objects {
			if object.GetNamespace() == "" && !strings.HasPrefix(object.GetKind(), "ClusterRole") {
				object.SetNamespace(r.namespace)
			}
			Expect(c.Create(ctx, object)).To(Succeed())
		}
		r.manifest = rendered.Manifest
		r.waitForRights(ctx)
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		i.createTarget(ctx, "cluster", "")
		item := i.createItem(ctx, "item", "cluster", i.newConfig("1", "a"))
		i.waitUntilSucceeded(ctx, item)
		Expect(i.Delete(ctx, item)).To(Succeed())
		Expect(c.Get(ctx, item, &lsv1alpha1.DeployItem{})).To(MatchError(ContainSubstring("not found")))
		p.stop()
	})

	It("all commands are valid for Helm, and all values exist in the chart", func() {
		for _, text := range g {
			for _, found := range regexp.MustCompile(`--set [^\s]+`).FindAllString(text, -1) {
				values := set(strings.Fields(found))
				_, err := helm.Render(helm.FindChart("manifest-deployer"), "rel", "ls-system", values)
				Expect(err).NotTo(HaveOccurred(), values)
			}
		}
	})
})

// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

// newHelmConfig returns the configuration of an item with a chart that contains a ConfigMap.
func newHelmConfig(namespace, value string) string {
	GinkgoHelper()
	c := &chartv2.Chart{
		Metadata:  &chartv2.Metadata{APIVersion: "v2", Name: "test", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/a.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: \"{{ .Values.k }}\"}\n")}},
	}
	path, err := chartutil.Save(c, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	archive, err := os.ReadFile(path) //nolint:gosec // was just written
	Expect(err).NotTo(HaveOccurred())
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": "web", "namespace": namespace,
		"chart": map[string]any{"archive": map[string]any{"raw": base64.StdEncoding.EncodeToString(archive)}}, "values": map[string]any{"k": value},
	})
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

var _ = Describe("Chart of the Helm deployer", func() {
	It("processes items of the Helm deployer with its rights and the credentials of registries [O66, O40]", func(ctx SpecContext) {
		r := newRelease(ctx, "rel", helm.FindChart("helm-deployer"))
		r.install(ctx, r.values("deployer: {identity: me, oci: {allowPlainHttp: true, secrets: {harbor: {auths: {registry.example: {auth: dXNlcjpjYW5hcnktN2YzYQ==}}}}}}"))
		p := r.start(ctx, "--config="+rewriteConfig(ctx, r))
		p.waitUntilReady()
		i := newItems(r)
		i.createTarget(ctx, "cluster", "")
		di := i.Item(i.namespace, "item", "landscaper.gardener.cloud/helm", newHelmConfig(i.namespace, "1"))
		di.Labels = map[string]string{"spec": i.spec}
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
		Expect(i.Deploy(ctx, di)).To(Succeed())
		item := client.ObjectKeyFromObject(di)
		i.waitUntilSucceeded(ctx, item)
		Expect(i.value(ctx, "a")).To(Equal("1"))
		i.updateItem(ctx, item, newHelmConfig(i.namespace, "2"))
		Expect(i.value(ctx, "a")).To(Equal("2"))
		Expect(p.getMetrics()).To(MatchRegexp(`deployerkit_helm_operations_total{[^}]*kind="upgrade",result="succeeded"} 1\n`))
		Expect(i.Delete(ctx, item)).To(Succeed())
		Expect(i.value(ctx, "a")).To(Equal("gone"))
		log := p.stop()
		Expect(log).NotTo(Or(ContainSubstring("is forbidden"), ContainSubstring("canary-7f3a")))
		Expect(listRefused(ctx, r.namespace, "rel-helm-deployer")).To(BeEmpty())
	})
})

// rewriteConfig writes the configuration file of a release with the paths of this test, and returns its path. A pod of
// this suite has its files in a temporary directory.
func rewriteConfig(ctx SpecContext, r *release) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for _, volume := range r.deployment(ctx).Spec.Template.Spec.Volumes {
		for name, content := range readVolume(ctx, r.namespace, volume) {
			text := strings.ReplaceAll(string(content), "/app/ls/registry/secrets", dir)
			Expect(os.WriteFile(dir+"/"+name, []byte(text), 0o600)).To(Succeed())
		}
	}
	return dir + "/config.yaml"
}

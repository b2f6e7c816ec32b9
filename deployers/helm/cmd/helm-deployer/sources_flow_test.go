// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/ProtonMail/go-crypto/openpgp"
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	cdv2 "github.com/gardener/landscaper/legacy-component-spec/bindings-go/apis/v2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/provenance"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// ref returns the field chart of a configuration with a chart in a registry.
func ref(reference string) map[string]any { return map[string]any{"ref": reference} }

// repository returns the field chart of a configuration with version 1.0.0 of the chart test in a chart repository.
func repository(url, version string) map[string]any {
	return map[string]any{"helmChartRepo": map[string]any{"helmChartRepoUrl": url, "helmChartName": "test", "helmChartVersion": version}}
}

// setAuths sets the credentials for chart repositories in a Context.
func setAuths(into *lsv1alpha1.Context, auths ...helmv1alpha1.Auth) {
	data, err := json.Marshal(helmv1alpha1.HelmChartRepoCredentials{Auths: auths})
	Expect(err).NotTo(HaveOccurred())
	into.Configurations = map[string]lsv1alpha1.AnyJSON{helmv1alpha1.HelmChartRepoCredentialsKey: {RawMessage: data}}
}

// basic returns the header for the user of all servers.
func basic(secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+secret))
}

// componentResource returns the field chart of a configuration with the resource "chart" of a component.
func componentResource(component string) map[string]any {
	raw, err := json.Marshal(map[string]any{
		"component": map[string]string{"name": component, "version": "1.0.0"}, "resource": map[string]any{"name": "chart"},
	})
	Expect(err).NotTo(HaveOccurred())
	return map[string]any{"resourceRef": base64.StdEncoding.EncodeToString(raw)}
}

var _ = Describe("Charts", func() {
	It("from all sources result in the same release [E20]", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, true)
		archive := colors("red").Archive()
		digest := s.push(GinkgoTB(), "charts/test", "1.0.0", archive, nil)
		s.addChart("/charts", "test-1.0.0.tgz", archive)
		w.createSecret(ctx, "pull", corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: dockerConfig(s.host(), password)})
		w.setContext(ctx, func(c *lsv1alpha1.Context) {
			c.RegistryPullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
			setAuths(c, helmv1alpha1.Auth{URL: s.URL, AuthHeader: basic(password)})
		})
		session := w.start(s.flag(GinkgoTB(), writeFile(s.ca())))
		for name, source := range map[string]map[string]any{
			"inline":           raw(colors("red")),
			"URL":              {"archive": map[string]any{"remote": map[string]any{"url": s.URL + "/charts/test-1.0.0.tgz"}}},
			"tag":              ref(s.host() + "/charts/test:1.0.0"),
			"tag and digest":   ref(s.host() + "/charts/test:1.0.0@" + digest),
			"digest":           ref(s.host() + "/charts/test@" + digest),
			"exact version":    repository(s.URL+"/charts", "1.0.0"),
			"range":            repository(s.URL+"/charts", "^1"),
			"without a scheme": repository(s.host()+"/charts", "1.0.0"),
		} {
			di := w.deploy(ctx, "item", w.config(source, nil))
			Expect(di).To(beSucceeded(), name)
			_, last, err := helm.DecodeStatus(di)
			Expect(err).NotTo(HaveOccurred())
			Expect(last.ChartDigest).To(Equal(chart.DigestOf(archive)), name)
			Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}), "%s: the inputs are the same, so there is no new revision", name)
		}
		Expect(w.color(ctx, "web")).To(Equal("red"))
		w.remove(ctx, "item")
		Expect(string(session.Err.Contents())+string(session.Out.Contents())).NotTo(ContainSubstring(password), "[Ex25]")
	}, SpecTimeout(5*patience))

	It("in registries and repositories need the right credential, and errors do not contain it [E22] [E23]", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, true)
		s.push(GinkgoTB(), "charts/test", "1.0.0", colors("red").Archive(), nil)
		s.addChart("/charts", "test-1.0.0.tgz", colors("red").Archive())
		w.createSecret(ctx, "pull", corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: dockerConfig(s.host(), "wr0ng")})
		w.createSecret(ctx, "repo", corev1.SecretTypeOpaque, map[string][]byte{"authHeader": []byte(basic("wr0ng"))})
		w.setContext(ctx, func(c *lsv1alpha1.Context) {
			c.RegistryPullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
			setAuths(c, helmv1alpha1.Auth{URL: s.URL, SecretRef: &lsv1alpha1.LocalSecretReference{Name: "repo"}})
		})
		w.start(s.flag(GinkgoTB(), writeFile(s.ca())))
		for name, source := range map[string]map[string]any{"registry": ref(s.host() + "/charts/test:1.0.0"), "repository": repository(s.URL+"/charts", "1.0.0")} {
			item := w.item(name, w.config(source, itemConfig{"name": name}))
			Expect(w.Deploy(ctx, item)).To(Succeed())
			Eventually(func(g Gomega) {
				di, err := w.Get(ctx, w.key(name))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(di.Status.LastError).NotTo(BeNil())
				g.Expect(di.Status.LastError.Message).To(And(ContainSubstring(s.host()), ContainSubstring("401"),
					Not(ContainSubstring("wr0ng")), Not(ContainSubstring(basic("wr0ng")))))
			}).Should(Succeed())
		}

		By("correcting the Secrets")
		for name, data := range map[string]map[string][]byte{"pull": {corev1.DockerConfigJsonKey: dockerConfig(s.host(), password)}, "repo": {"authHeader": []byte(basic(password))}} {
			secret := &corev1.Secret{}
			Expect(c.Get(ctx, w.key(name), secret)).To(Succeed())
			secret.Data = data
			Expect(c.Update(ctx, secret)).To(Succeed())
		}
		for _, name := range []string{"registry", "repository"} {
			Eventually(func(g Gomega) {
				di, err := w.Get(ctx, w.key(name))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(di).To(beSucceeded())
			}).Should(Succeed(), "errors of access are temporary, so the jobs go on")
		}
		w.remove(ctx, "registry", "repository")
	}, SpecTimeout(5*patience))

	It("do not receive the credentials of other hosts [E23] [Ex26]", func(ctx SpecContext) {
		w, protected, other := newWorld(ctx), newServer(GinkgoTB(), true, true), newServer(GinkgoTB(), true, false)
		archive := colors("red").Archive()
		other.addChart("/charts", "test-1.0.0.tgz", archive)
		protected.addChart("/charts", other.URL+"/charts/test-1.0.0.tgz", archive) // the index names an archive on another host
		w.setContext(ctx, func(c *lsv1alpha1.Context) {
			setAuths(c, helmv1alpha1.Auth{URL: protected.URL, AuthHeader: basic(password)})
		})
		w.start(protected.flag(GinkgoTB(), writeFile(protected.ca())), other.flag(GinkgoTB(), writeFile(other.ca())))
		Expect(w.deploy(ctx, "one", w.config(repository(protected.URL+"/charts", "1.0.0"), nil))).To(beSucceeded())
		Expect(w.deploy(ctx, "two", w.config(repository(other.URL+"/charts", "1.0.0"), itemConfig{"name": "two"}))).To(beSucceeded())
		Expect(protected.received()).NotTo(BeEmpty())
		Expect(other.received()).To(BeEmpty())
		w.remove(ctx, "two", "one")
	}, SpecTimeout(5*patience))

	It("come from hosts without TLS if the configuration file lists them, with its credentials [E22] [E30]", func(ctx SpecContext) {
		w, listed, unlisted := newWorld(ctx), newServer(GinkgoTB(), false, true), newServer(GinkgoTB(), false, false)
		listed.push(GinkgoTB(), "charts/test", "1.0.0", colors("red").Archive(), nil)
		unlisted.push(GinkgoTB(), "charts/test", "1.0.0", colors("red").Archive(), nil)
		file := writeFile(dockerConfig(listed.host(), password))
		settings := writeFile([]byte("apiVersion: helm.deployer.landscaper.gardener.cloud/v1alpha1\nkind: Configuration\nidentity: mine\nnamespace: ls-system\n" +
			"oci: {allowPlainHttp: true, insecureSkipVerify: false, configFiles: [" + file + "], cache: {useInMemoryOverlay: true, path: /tmp}}\n" +
			"export: {defaultTimeout: 1m}\nhpa: {maxReplicas: 1, averageCpuUtilization: 80}\ncontroller: {workers: 3}\n"))
		session := w.start("--config="+settings, "--allow-private-chart-hosts")
		di := w.deploy(ctx, "item", w.config(ref(listed.host()+"/charts/test:1.0.0"), nil))
		Expect(di).To(beSucceeded())
		Expect(di.Status.Deployer.Identity).To(Equal("mine"))
		Expect(w.Deploy(ctx, w.item("other", w.config(ref(unlisted.host()+"/charts/test:1.0.0"), itemConfig{"name": "other"})))).To(Succeed())
		Eventually(func(g Gomega) {
			di, err := w.Get(ctx, w.key("other"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(di.Status.LastError).NotTo(BeNil())
			g.Expect(di.Status.LastError.Message).To(ContainSubstring("answers without TLS"))
		}).Should(Succeed())
		Expect(string(session.Err.Contents())).To(And(ContainSubstring(`"fields":["oci.cache"]`), ContainSubstring(`"hpa.averageCpuUtilization"`)))
		w.remove(ctx, "item", "other")
	}, SpecTimeout(5*patience))

	It("are cached, and a moved tag is detected by the next job [Ex31] [Ex32] [Ex36]", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, false)
		s.push(GinkgoTB(), "charts/test", "1.0.0", colors("red").Archive(), nil)
		metrics := findFreeAddress()
		w.start(s.flag(GinkgoTB(), writeFile(s.ca())), "--metrics-bind-address="+metrics)
		source := w.config(ref(s.host()+"/charts/test:1.0.0"), nil)
		Expect(w.deploy(ctx, "item", source)).To(beSucceeded())
		other := w.config(ref(s.host()+"/charts/test:1.0.0"), itemConfig{"name": "other", "helmDeployment": false})
		Expect(w.deploy(ctx, "other", other)).To(beSucceeded())
		Expect(w.again(ctx, "item")).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
		s.push(GinkgoTB(), "charts/test", "1.0.0", colors("blue").Archive(), nil)
		Expect(w.again(ctx, "item")).To(beSucceeded())
		Expect(w.color(ctx, "web")).To(Equal("blue"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 deployed"}))
		w.remove(ctx, "other", "item")

		Expect(get(ctx, "http://"+metrics+"/metrics")()).To(And(
			MatchRegexp(`deployerkit_helm_charts_total{[^}]*event="download"} 2\n`), MatchRegexp(`deployerkit_helm_charts_total{[^}]*event="cache_hit"} [1-9]`),
			MatchRegexp(`deployerkit_helm_operations_total{[^}]*kind="install",result="succeeded"} 1\n`),
			MatchRegexp(`deployerkit_helm_operations_total{[^}]*kind="upgrade",result="succeeded"} 1\n`),
			MatchRegexp(`deployerkit_helm_operations_total{[^}]*kind="uninstall",result="succeeded"} 1\n`),
			MatchRegexp(`deployerkit_helm_operation_duration_seconds_count{[^}]*kind="install"} 1\n`),
			MatchRegexp(`deployerkit_helm_operations_under_way{[^}]*kind="upgrade"} 0\n`),
		))
	}, SpecTimeout(5*patience))

	It("must be signed by a key of the keyring, if the item names one [Ex33]", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, false)
		key, err := openpgp.NewEntity("test", "", "test@test.test", nil)
		Expect(err).NotTo(HaveOccurred())
		var keyring bytes.Buffer
		Expect(key.Serialize(&keyring)).To(Succeed())
		archive := colors("red").Archive()
		signature, err := (&provenance.Signatory{Entity: key}).ClearSign(archive, "test-1.0.0.tgz", []byte("apiVersion: v2\nname: test\nversion: 1.0.0\n"))
		Expect(err).NotTo(HaveOccurred())
		s.push(GinkgoTB(), "signed/test", "1.0.0", archive, []byte(signature))
		s.push(GinkgoTB(), "unsigned/test", "1.0.0", archive, nil)
		w.createSecret(ctx, "keys", corev1.SecretTypeOpaque, map[string][]byte{chart.DefaultKeyringKey: keyring.Bytes()})
		w.start(s.flag(GinkgoTB(), writeFile(s.ca())))
		verify := itemConfig{"deployerkit": map[string]any{"verify": map[string]any{"name": "keys"}}}
		Expect(w.deploy(ctx, "item", w.config(ref(s.host()+"/unsigned/test:1.0.0"), verify))).To(beFailed("spec.config.chart.ref: ", "has no provenance file"))
		Expect(w.history(ctx, "web")).To(BeEmpty())
		Expect(w.deploy(ctx, "item", w.config(ref(s.host()+"/signed/test:1.0.0"), verify))).To(beSucceeded())
		w.remove(ctx, "item")
	}, SpecTimeout(5*patience))

	It("can be resources of a component in a registry [E21]", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, false)
		s.push(GinkgoTB(), "charts/test", "1.0.0", colors("red").Archive(), nil)
		s.pushComponent(GinkgoTB(), "components", "example.com/app", s.host()+"/charts/test:1.0.0")
		w.setContext(ctx, func(c *lsv1alpha1.Context) {
			c.RepositoryContext = &cdv2.UnstructuredTypedObject{}
			Expect(c.RepositoryContext.UnmarshalJSON([]byte(`{"type":"ociRegistry","baseUrl":"https://` + s.host() + `/components"}`))).To(Succeed())
		})
		w.start(s.flag(GinkgoTB(), writeFile(s.ca())))
		Expect(w.deploy(ctx, "item", w.config(componentResource("example.com/app"), nil))).To(beSucceeded())
		Expect(w.color(ctx, "web")).To(Equal("red"))
		w.remove(ctx, "item")
	}, SpecTimeout(5*patience))

	It("do not come from private addresses by default [Ex28]", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, false)
		s.push(GinkgoTB(), "charts/test", "1.0.0", colors("red").Archive(), nil)
		w.start()
		Expect(w.deploy(ctx, "item", w.config(ref(s.host()+"/charts/test:1.0.0"), nil))).To(beFailed("private or metadata address"))
		w.remove(ctx, "item")
	}, SpecTimeout(5*patience))

	It("whose values do not fit leave no value in the log [Ex25]", func(ctx SpecContext) {
		w := newWorld(ctx)
		session := w.start()
		// Helm prints the global value of a subchart if it conflicts with the global value of the chart.
		files := colors("red").With(charttest.Files{"charts/sub/Chart.yaml": "{apiVersion: v2, name: sub, version: 1.0.0}"})
		Expect(w.deploy(ctx, "item", w.config(raw(files), itemConfig{"values": map[string]any{
			"global": map[string]any{"a": map[string]any{"b": map[string]any{"c": 1}}},
			"sub":    map[string]any{"global": map[string]any{"a": map[string]any{"b": password + "-value"}}},
		}}))).To(beSucceeded())
		w.remove(ctx, "item")
		log := string(session.Err.Contents()) + string(session.Out.Contents())
		Expect(log).To(ContainSubstring(`"level":"debug"`))
		Expect(log).NotTo(ContainSubstring(password))
	}, SpecTimeout(5*patience))
})

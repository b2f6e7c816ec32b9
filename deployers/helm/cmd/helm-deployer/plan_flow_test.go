// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// runPlan runs the command plan, and returns its exit code, its output and its errors.
func runPlan(args ...string) (code int, out, errs string) {
	GinkgoHelper()
	session := run(append([]string{"plan", "--kubeconfig=" + kubeconfig, "--allow-private-hosts"}, args...)...)
	Eventually(session).Should(gexec.Exit())
	return session.ExitCode(), string(session.Out.Contents()), string(session.Err.Contents())
}

// writeItem writes an item to a file.
func writeItem(di *lsv1alpha1.DeployItem) string {
	GinkgoHelper()
	di.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))
	text, err := yaml.Marshal(di)
	Expect(err).NotTo(HaveOccurred())
	return writeFile(text)
}

// countSecrets returns the number of Secrets in the namespace of the world.
func (w *world) countSecrets(ctx context.Context) int {
	GinkgoHelper()
	list := &corev1.SecretList{}
	Expect(c.List(ctx, list)).To(Succeed())
	count := 0
	for i := range list.Items {
		if list.Items[i].Namespace == w.namespace {
			count++
		}
	}
	return count
}

var _ = Describe("The command plan", func() {
	It("shows the revision, the changed values and objects and the hooks, and writes nothing [Ex34]", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, true)
		files := colors("red").With(charttest.Files{
			"templates/h.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: before, annotations: {helm.sh/hook: pre-upgrade}}\n",
			"templates/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: \"{{ .Values.password }}\"}\n",
		})
		s.push(GinkgoTB(), "charts/test", "1.0.0", files.Archive(), nil)
		w.createSecret(ctx, "pull", corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: dockerConfig(s.host(), password)})
		w.setContext(ctx, func(c *lsv1alpha1.Context) { c.RegistryPullSecrets = []corev1.LocalObjectReference{{Name: "pull"}} })
		host := s.flag(GinkgoTB(), writeFile(s.ca()))
		newItem := func(values map[string]any) string {
			return writeItem(w.item("item", w.config(ref(s.host()+"/charts/test:1.0.0"), itemConfig{"values": values})))
		}
		before := w.countSecrets(ctx)
		code, out, errs := runPlan("-f", newItem(map[string]any{"password": password}), host)
		Expect(code).To(Equal(2), errs)
		Expect(out).To(Equal("DeployItem " + w.namespace + "/item on Target " + w.namespace + "/cluster\n" +
			"chart test 1.0.0\nrevision 1\n" +
			"create ConfigMap " + w.namespace + "/web\ncreate Secret " + w.namespace + "/s\n2 to do, 0 unchanged\n"))
		Expect(w.countSecrets(ctx)).To(Equal(before), "no release record")

		w.start(host)
		Expect(w.deploy(ctx, "item", w.config(ref(s.host()+"/charts/test:1.0.0"), itemConfig{"values": map[string]any{"password": password}}))).To(beSucceeded())
		code, out, errs = runPlan("item", "-n", w.namespace, host)
		Expect(code).To(Equal(0), errs)
		Expect(out).To(HaveSuffix("0 to do, 2 unchanged\n"))

		code, out, errs = runPlan("-f", newItem(map[string]any{"password": password + "-new", "color": "blue"}), host)
		Expect(code).To(Equal(2), errs)
		Expect(out).To(ContainSubstring("chart test 1.0.0\nrevision 2\nvalue color added\nvalue password changed\nhook pre-upgrade ConfigMap before\n"))
		Expect(out).To(ContainSubstring(`.data.color: "red" -> "***"`))
		Expect(out+errs).NotTo(ContainSubstring(password), "[Ex25]")
		w.remove(ctx, "item")
	}, SpecTimeout(5*patience))

	It("reports an invalid configuration, a chart without access and an invalid flag", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, true)
		for want, args := range map[string][]string{
			"spec.config.name: \"Web\" is not the name of a release": {"-f", writeItem(w.item("item", w.config(raw(colors("red")), itemConfig{"name": "Web"})))},
			"spec.config.chart.ref: " + s.host() + ": ":              {"-f", writeItem(w.item("item", w.config(ref(s.host()+"/charts/test:1.0.0"), nil))), s.flag(GinkgoTB(), writeFile(s.ca()))},
			"--chart-host \"a\": want HOST[:PORT]:SETTING":           {"item", "--chart-host=a"},
			"get DeployItem " + w.namespace + "/missing":             {"missing", "-n", w.namespace},
		} {
			code, out, errs := runPlan(args...)
			Expect(code).To(Equal(1), errs)
			Expect(errs).To(ContainSubstring(want))
			Expect(out).To(BeEmpty())
		}
	}, SpecTimeout(5*patience))
})

// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"

	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// sdk returns a configuration of Helm's SDK for the namespace of a world.
func (w *world) sdk() *action.Configuration {
	GinkgoHelper()
	file, err := cp.WriteKubeconfig(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	settings := cli.New()
	settings.KubeConfig = file
	settings.SetNamespace(w.namespace)
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(io.Discard, nil)))
	Expect(cfg.Init(settings.RESTClientGetter(), w.namespace, "secret")).To(Succeed())
	return cfg
}

// sdkChart loads a chart with Helm's SDK.
func sdkChart(files charttest.Files) *chartv2.Chart {
	GinkgoHelper()
	c, err := loader.LoadArchive(bytes.NewReader(files.Archive()))
	Expect(err).NotTo(HaveOccurred())
	return c
}

// many is a chart with everything that influences rendering.
var many = charttest.Files{
	"Chart.yaml": "apiVersion: v2\nname: test\nversion: 1.0.0\nkubeVersion: '>=1.20-0'\ndependencies:\n" +
		"- {name: sub, version: 2.0.0, alias: first, condition: first.enabled}\n" +
		"- {name: sub, version: 2.0.0, alias: second, import-values: [{child: data, parent: imported}]}\n" +
		"- {name: lib, version: 1.0.0}\n",
	"values.yaml":        "first: {enabled: false}\nglobal: {region: eu}\nsizes: {small: 1, big: 12345678}\n",
	"values.schema.json": `{"type": "object", "properties": {"color": {"type": "string"}}}`,
	"charts/sub.tgz": string(charttest.Files{
		"Chart.yaml": "apiVersion: v2\nname: sub\nversion: 2.0.0\n", "values.yaml": "data: {a: b}\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-{{ .Chart.Name }}\"}\ndata: {region: \"{{ .Values.global.region }}\"}\n",
	}.Archive()),
	"charts/lib.tgz": string(charttest.Files{
		"Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n", "templates/_l.tpl": "{{ define \"lib.labels\" }}app: {{ .Chart.Name }}{{ end }}",
	}.Archive()),
	"templates/NOTES.txt": "Installed {{ .Release.Name }}, revision {{ .Release.Revision }}.\n",
	"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: main\n  labels: { {{- include \"lib.labels\" . -}} }\ndata:\n" +
		"  imported: {{ .Values.imported.a }}\n  big: {{ .Values.sizes.big | quote }}\n  exact: {{ int64 .Values.sizes.big | quote }}\n" +
		"  install: {{ .Release.IsInstall | quote }}\n  {{- range $k, $v := .Values.list }}\n  item{{ $k }}: {{ $v | quote }}\n  {{- end }}\n" +
		"  ns: {{ (lookup \"v1\" \"Namespace\" \"\" .Release.Namespace).metadata.name | quote }}\n  deploy: {{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" | quote }}\n" +
		"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account}\n",
	"templates/h.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: \"pre-install,post-upgrade\", helm.sh/hook-weight: \"3\"}}\n",
}

var _ = Describe("Helm's SDK", func() {
	values := map[string]any{"list": []any{"x", 2.0, true}, "color": "red"}

	It("renders the same objects, hooks and notes [E24]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(many, values, nil))).To(beSucceeded())
		cfg := w.sdk()
		stored, err := cfg.Releases.Get("web", 1)
		Expect(err).NotTo(HaveOccurred())
		got := stored.(*releasev1.Release)
		install := action.NewInstall(cfg)
		install.ReleaseName, install.Namespace, install.DryRunStrategy = "web", w.namespace, action.DryRunServer
		rendered, err := install.RunWithContext(ctx, sdkChart(many), values)
		Expect(err).NotTo(HaveOccurred())
		want := rendered.(*releasev1.Release)
		Expect(got.Manifest).To(Equal(want.Manifest))
		Expect(got.Info.Notes).To(Equal(want.Info.Notes))
		Expect(got.Hooks).To(HaveLen(1))
		Expect(got.Hooks[0].Manifest).To(Equal(want.Hooks[0].Manifest))
		Expect(got.Hooks[0].Events).To(Equal(want.Hooks[0].Events))
		gotConfig, wantConfig := asJSON(got.Config), asJSON(want.Config)
		Expect(gotConfig).To(MatchJSON(wantConfig))
	})

	It("lists, rolls back and uninstalls a release of the deployer [E2]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		Expect(w.update(ctx, "item", w.helmMode(simple, map[string]any{"color": "red"}, nil))).To(beSucceeded())
		w.manager.Stop()
		cfg := w.sdk()
		list, err := action.NewList(cfg).Run()
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(HaveLen(1))
		history, err := action.NewHistory(cfg).Run("web")
		Expect(err).NotTo(HaveOccurred())
		Expect(history).To(HaveLen(2))
		rollback := action.NewRollback(cfg)
		rollback.Version, rollback.ForceConflicts, rollback.WaitStrategy = 1, true, kube.HookOnlyStrategy
		Expect(rollback.Run("web")).To(Succeed())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "blue"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 superseded", "3 deployed"}))
		uninstall := action.NewUninstall(cfg)
		uninstall.WaitStrategy = kube.HookOnlyStrategy
		_, err = uninstall.Run("web")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.read(ctx, "fixed")).To(BeNil())
	})

	It("upgrades a release of the deployer, whose status Landscaper can decode [E28]", func(ctx SpecContext) {
		w := newWorld(ctx)
		di := w.deploy(ctx, "item", w.helmMode(simple, nil, nil))
		Expect(di).To(beSucceeded())
		status := &helmv1alpha1.ProviderStatus{}
		Expect(json.Unmarshal(di.Status.ProviderStatus.Raw, status)).To(Succeed())
		Expect(status.ManagedResources).To(HaveLen(2))
		w.manager.Stop()
		upgrade := action.NewUpgrade(w.sdk())
		upgrade.Namespace, upgrade.ForceConflicts, upgrade.WaitStrategy = w.namespace, true, kube.HookOnlyStrategy
		_, err := upgrade.RunWithContext(ctx, "web", sdkChart(simple), map[string]any{"color": "green"})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "green"))
	})

	It("has its release taken over without a new revision, and its fields with the next change [E27]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := charttest.Files{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colors}\ndata: {color: red{{ if .Values.more }}, more: yes please{{ end }}}\n"}
		before := kube.ManagedFieldsManager
		kube.ManagedFieldsManager = "helm-deployer-controller"
		DeferCleanup(func() { kube.ManagedFieldsManager = before })
		install := action.NewInstall(w.sdk())
		install.ReleaseName, install.Namespace, install.ServerSideApply, install.WaitStrategy = "web", w.namespace, false, kube.HookOnlyStrategy
		_, err := install.RunWithContext(ctx, sdkChart(files), map[string]any{"more": true})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("more", "yes please"))
		Expect(w.deploy(ctx, "item", w.helmMode(files, map[string]any{"more": true}, nil))).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
		Expect(w.update(ctx, "item", w.helmMode(files, nil, nil))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(Equal(map[string]string{"color": "red"}))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 deployed"}))
		w.remove(ctx, "item")
		Expect(w.Get(ctx, w.key("colors"), &corev1.ConfigMap{})).NotTo(Succeed())
	})
})

// asJSON encodes a value.
func asJSON(value any) string {
	GinkgoHelper()
	raw, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/faultnet"
)

var _ = Describe("Errors that another attempt cannot fix", func() {
	for name, mode := range map[string]func(*world, charttest.Files, map[string]any, config) config{"Helm mode": (*world).helmMode, "manifest mode": (*world).manifestMode} {
		Context("of a chart", Ordered, ContinueOnFailure, func() {
			var w *world
			s, items := &store{charts: map[string]charttest.Files{}}, 0
			BeforeAll(func(ctx SpecContext) { w = newWorld(ctx, useStore(s)) })

			DescribeTable("end the job at the first attempt, in "+name+" [Ex14]", func(ctx SpecContext, want string, files charttest.Files) {
				items++
				item := fmt.Sprint("item", items)
				s.add(item, simple.With(files))
				before := w.counter.Snapshot()
				di := w.deploy(ctx, item, mode(w, nil, map[string]any{"size": "s3cr3t-size"}, ref(item)))
				Expect(di).To(beFailed(want))
				Expect(di.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
				Expect(di.Status.LastError.Message).NotTo(ContainSubstring("s3cr3t"))
				Expect(len(di.Status.LastError.Message)).To(BeNumerically("<=", 1100))
				Expect(s.countFetches(item)).To(Equal(1), "the number of fetched charts")
				_, writes := w.spent(before)
				Expect(writes).To(BeZero(), "the number of writes")
			},
				Entry("a template that fails", "error calling include", charttest.Files{"templates/c.yaml": `{{ include "missing" . }}`}),
				Entry("a required value", "execution error at (test/templates/c.yaml:1:3): no host", charttest.Files{"templates/c.yaml": `{{ required "no host" .Values.host }}`}),
				Entry("values that the schema rejects", "spec.config.values: values.schema.json of chart test: size must be of type integer, is string", charttest.Files{"values.schema.json": `{"properties": {"size": {"type": "integer"}}}`}),
				Entry("another Kubernetes version", "requires Kubernetes >=1.99", charttest.Files{"Chart.yaml": "apiVersion: v2\nname: test\nversion: 1.0.0\nkubeVersion: \">=1.99\"\n"}),
				Entry("a document that is not an object [E25]", "test/templates/c.yaml, document 2: is not an object", charttest.Files{"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\njust text\n"}),
				Entry("a dependency that the archive does not contain", "chart test 1.0.0 does not contain its dependencies: missing", charttest.Files{"Chart.yaml": "apiVersion: v2\nname: test\nversion: 1.0.0\ndependencies: [{name: missing, version: 1.0.0}]\n"}),
				Entry("the same object twice", "ConfigMap fixed is also in", charttest.Files{"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\n"}),
			)
		})
	}

	It("name the source of a chart that needs another deployer or another field [E21]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(nil, nil, config{"chart": map[string]any{"resourceRef": "cd/1.0.0/resource"}}))).To(beFailed("spec.config.chart.resourceRef"))
		Expect(w.update(ctx, "item", w.helmMode(nil, nil, config{"chart": map[string]any{"fromResource": map[string]any{"resourceName": "x"}}}))).To(
			beFailed("chart.fromResource: no longer supported: use chart.resourceRef, chart.ref or chart.helmChartRepo"))
	})

	It("name the container of a Job, in one short line without its log [Ex16]", func(ctx SpecContext) {
		w := newWorld(ctx)
		job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}\nspec:\n  backoffLimit: 0\n" +
			"  template: {spec: {restartPolicy: Never, containers: [{name: c, image: c, terminationMessagePolicy: FallbackToLogsOnError}]}}\n"
		w.create(ctx, "item", w.helmMode(simple.With(charttest.Files{"templates/j.yaml": job}), nil, nil))
		Eventually(func(g Gomega) {
			pods := &corev1.PodList{}
			g.Expect(w.List(ctx, pods, client.InNamespace(w.namespace), client.MatchingLabels{"batch.kubernetes.io/job-name": "migrate"})).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1))
			pod := &pods.Items[0]
			pod.Status.Phase = corev1.PodFailed
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "OOMKilled", Message: strings.Repeat("a line of the log\n", 100),
			}}}}
			g.Expect(w.Status().Update(ctx, pod)).To(Succeed())
		}).Should(Succeed())
		di := w.finished(ctx, "item")
		Expect(di).To(beFailed("install of chart test 1.0.0 failed: pre-install hook Job migrate: failed: BackoffLimitExceeded: Job has reached the specified backoff limit (container c ended with exit code 137: OOMKilled)"))
		Expect(di.Status.LastError.Message).NotTo(ContainSubstring("\n"))
		Expect(di.Status.LastError.Message).NotTo(ContainSubstring("a line of the log"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed"}))
	})

	It("count as one revision each, of which the last ten and the deployed one are kept [E13]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := simple.With(charttest.Files{"templates/s.yaml": "{{ if .Values.broken }}\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: broken, ports: [{port: 80}]}\n{{ end }}"})
		Expect(w.deploy(ctx, "item", w.helmMode(files, nil, nil))).To(beSucceeded())
		for i := range 12 {
			Expect(w.update(ctx, "item", w.helmMode(files, map[string]any{"broken": true, "color": strings.Repeat("x", i+1)}, nil))).To(beFailed("Service"))
		}
		history := w.history(ctx, "web")
		Expect(history).To(HaveLen(11))
		Expect(history[0]).To(Equal("1 deployed"))
		Expect(history[1]).To(Equal("4 failed"))
		Expect(w.update(ctx, "item", w.helmMode(files, map[string]any{"color": "red"}, nil))).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(HaveLen(10))
	})
})

// interruption is a situation in which an upgrade is interrupted.
type interruption struct {
	files  charttest.Files
	blocks bool // no object can be written
	began  func(context.Context, *world) error
}

var _ = Describe("The interruption of an upgrade", func() {
	situations := []interruption{
		{simple, true, func(context.Context, *world) error { return nil }},
		{simple.With(charttest.Files{"templates/h.yaml": hook("slow", "pre-upgrade", "")}), false, func(ctx context.Context, w *world) error {
			return w.Get(ctx, w.key("slow"), &corev1.Pod{})
		}},
		{simple.With(charttest.Files{"templates/d.yaml": deployment}), false, func(ctx context.Context, w *world) error {
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(deploymentKind)
			return w.Get(ctx, w.key("unready"), object)
		}},
	}
	ends := map[string]func(context.Context, *world){
		"an interrupt": func(ctx context.Context, w *world) {
			Expect(w.landscaper.Interrupt(ctx, w.key("item"))).To(Succeed())
		},
		"an abort": func(ctx context.Context, w *world) {
			Expect(w.landscaper.SetOperation(ctx, w.key("item"), contract.AbortOperation)).To(Succeed())
		},
		"the deadline": func(context.Context, *world) {},
		"a shutdown":   func(_ context.Context, w *world) { w.manager.Stop() },
	}
	for end, interrupt := range ends {
		It("by "+end+", while objects are written, a hook runs, or objects are not ready, marks its record as failed, and keeps the deployed revision [Ex10]", func(ctx SpecContext) {
			inParallel(situations, func(s interruption) {
				interruptUpgrade(ctx, s, end == "the deadline", interrupt)
			})
			Eventually(operationGoroutines).Should(BeZero())
		})
	}
})

// inParallel calls a function for each element of a list, at the same time.
func inParallel[T any](all []T, f func(T)) {
	var running sync.WaitGroup
	for _, one := range all {
		running.Go(func() {
			defer GinkgoRecover()
			f(one)
		})
	}
	running.Wait()
}

// interruptUpgrade installs a release, interrupts an upgrade, and checks the records.
func interruptUpgrade(ctx context.Context, s interruption, deadline bool, interrupt func(context.Context, *world)) {
	w := newWorld(ctx)
	Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
	if deadline {
		di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "item"}}
		Expect(w.Patch(ctx, di, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"timeout":%q}}`, jobTimeout)))).To(Succeed())
	}
	if s.blocks {
		w.counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Resource == "configmaps" && r.Verb == "patch" }, faultnet.BlockRequest()))
	}
	w.trigger(ctx, "item", w.helmMode(s.files, map[string]any{"color": "red"}, settings(map[string]any{"wait": true})))
	Eventually(w.revisions(ctx, "web")).Should(HaveExactElements("1 deployed", HavePrefix("2 ")))
	Eventually(func() error { return s.began(ctx, w) }).Should(Succeed())
	interrupt(ctx, w)
	Eventually(w.revisions(ctx, "web")).Should(Equal([]string{"1 deployed", "2 failed"}))
	record, err := release.NewStorage(w, w.namespace, "web").Get(ctx, 2)
	Expect(err).NotTo(HaveOccurred())
	Expect(record.Description()).To(HavePrefix("upgrade failed: "))
	w.counter.SetInjector(nil)
	w.manager.Stop()
	Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed", "2 failed"}))
}

// operationGoroutines counts the goroutines of operations.
func operationGoroutines() int {
	stacks := make([]byte, 8<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "deployers/helm.(*operation)") +
		strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "deployers/helm.(*run).watchEnd")
}

var _ = Describe("Objects of other owners", func() {
	foreign := func(w *world, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": "theirs", "meta.helm.sh/release-namespace": w.namespace},
		}, Data: map[string]string{"a": "x"}}
	}

	It("are named, and adopted only if takeOwnership is set [E11]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.Create(ctx, foreign(w, "fixed"))).To(Succeed())
		before := w.counter.Snapshot()
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beFailed("ConfigMap " + w.namespace + "/fixed exists already and belongs to release theirs in namespace " + w.namespace))
		_, writes := w.spent(before)
		Expect(writes).To(BeZero(), "the number of writes")
		Expect(w.update(ctx, "item", w.helmMode(simple, nil, settings(map[string]any{"takeOwnership": true})))).To(beSucceeded())
		cm := &corev1.ConfigMap{}
		Expect(w.Get(ctx, w.key("fixed"), cm)).To(Succeed())
		Expect(cm.Data).To(Equal(map[string]string{"a": "b"}))
		Expect(cm.Annotations).To(HaveKeyWithValue("meta.helm.sh/release-name", "web"))
		w.remove(ctx, "item")
		Expect(w.read(ctx, "fixed")).To(BeNil())
	})

	It("stay with an item of the deployer that exists [E11]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "first", w.helmMode(simple, nil, nil))).To(beSucceeded())
		c := settings(map[string]any{"takeOwnership": true})
		c["name"] = "other"
		Expect(w.deploy(ctx, "second", w.helmMode(simple, nil, c))).To(beFailed("first"))
		Expect(w.update(ctx, "first", w.helmMode(simple, map[string]any{"color": "red"}, nil))).To(beSucceeded())
	})
})

var _ = Describe("Definitions of the chart", func() {
	It("are left out if the policy is Skip, and an event names other objects in the directory crds [Ex22]", func(ctx SpecContext) {
		w := newWorld(ctx)
		group := w.namespace + ".example.com"
		files := simple.With(charttest.Files{"crds/a.yaml": definition(group), "crds/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stray}\n"})
		Expect(w.deploy(ctx, "item", w.helmMode(files, nil, config{"deployerkit": map[string]any{"crds": map[string]any{"install": "Skip"}}}))).To(beSucceeded())
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(crdKind)
		Expect(w.Get(ctx, client.ObjectKey{Name: "widgets." + group}, object)).NotTo(Succeed())
		Eventually(w.events(ctx, "ObjectsIgnored")).Should(ContainElement(ContainSubstring("ConfigMap stray")))
		Expect(w.Get(ctx, w.key("stray"), &corev1.ConfigMap{})).NotTo(Succeed())
	})
})

var _ = Describe("A release of Landscaper's deployer", func() {
	It("is taken over without a new revision, if Helm 3 has written it [E27]", func(ctx SpecContext) {
		w := newWorld(ctx)
		files := charttest.Files{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colors}\ndata: {color: red{{ if .Values.more }}, more: yes please{{ end }}}\n"}
		values := map[string]any{"more": true}
		encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
		record := map[string]any{
			"name": "web", "namespace": w.namespace, "version": 1, "config": values,
			"info": map[string]any{"first_deployed": "2025-01-01T00:00:00Z", "last_deployed": "2025-01-01T00:00:00Z", "deleted": "", "description": "Install complete", "status": "deployed"},
			"chart": map[string]any{
				"metadata": map[string]any{"name": "test", "version": "1.0.0", "apiVersion": "v2"}, "lock": nil, "values": map[string]any{}, "schema": nil, "files": []any{},
				"templates": []any{map[string]any{"name": "templates/a.yaml", "data": encode(files["templates/a.yaml"])}},
			},
			"manifest": "---\n# Source: test/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: colors}\ndata: {color: red, more: yes please}\n",
		}
		raw, err := json.Marshal(record)
		Expect(err).NotTo(HaveOccurred())
		var zipped bytes.Buffer
		writer := gzip.NewWriter(&zipped)
		_, err = writer.Write(raw)
		Expect(err).NotTo(HaveOccurred())
		Expect(writer.Close()).To(Succeed())
		Expect(w.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sh.helm.release.v1.web.v1", Labels: map[string]string{"owner": "helm", "name": "web", "status": "deployed", "version": "1", "modifiedAt": "1735689600"}},
			Type:       "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(zipped.Bytes()))},
		})).To(Succeed())
		cm := foreignConfigMap(w, "colors", map[string]string{"color": "red", "more": "yes please"})
		Expect(w.Create(ctx, cm, client.FieldOwner("helm-deployer-controller"))).To(Succeed())

		Expect(w.deploy(ctx, "item", w.helmMode(files, values, nil))).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed"}))
		Expect(w.update(ctx, "item", w.helmMode(files, nil, nil))).To(beSucceeded())
		Expect(w.read(ctx, "colors")).To(Equal(map[string]string{"color": "red"}))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 deployed"}))
	})
})

// foreignConfigMap returns a ConfigMap as Helm creates it for the release "web".
func foreignConfigMap(w *world, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
		Annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": w.namespace},
	}, Data: data}
}

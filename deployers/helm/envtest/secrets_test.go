// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// output collects everything that a deployer writes for people.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) add(prefix, args string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = fmt.Fprintln(&o.text, prefix, args)
}

// all returns the log, the status and the annotations of the items, the events, the metrics, and the metadata and
// descriptions of the release records.
func (o *output) all(ctx context.Context, w *world) string {
	GinkgoHelper()
	items := &lsv1alpha1.DeployItemList{}
	Expect(w.List(ctx, items, client.InNamespace(w.namespace))).To(Succeed())
	for i := range items.Items {
		o.add("item", asJSON(items.Items[i].Status)+asJSON(items.Items[i].ObjectMeta))
	}
	events := &eventsv1.EventList{}
	Expect(w.List(ctx, events, client.InNamespace(w.namespace))).To(Succeed())
	for i := range events.Items {
		o.add("event", asJSON(events.Items[i]))
	}
	families, err := w.manager.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		var text bytes.Buffer
		_, err := expfmt.MetricFamilyToText(&text, family)
		Expect(err).NotTo(HaveOccurred())
		o.add("metrics", text.String())
	}
	secrets := &corev1.SecretList{}
	Expect(w.List(ctx, secrets, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm"})).To(Succeed())
	for i := range secrets.Items {
		o.add("record", asJSON(secrets.Items[i].ObjectMeta))
	}
	storage := release.NewStorage(w, w.namespace, "web")
	revisions, err := storage.List(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, revision := range revisions {
		record, err := storage.Get(ctx, revision.Number)
		Expect(err).NotTo(HaveOccurred())
		o.add("description", record.Description())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var _ = Describe("Values", func() {
	const canary = "c4n4ry"
	values := map[string]any{
		"password": canary + "-password", "ip": canary + "-ip", "number": 8675309.25, "list": []any{canary + "-element"},
		"key": "-----BEGIN KEY-----\n" + canary + "line1\n" + canary + "line2\n-----END KEY-----\n", "nested": map[string]any{"json": `{"token": "` + canary + `-token"}`},
	}
	failures := map[string]charttest.Files{
		"a template that fails":         {"templates/x.yaml": `{{ fail (printf "%s and %s %v" .Values.password .Values.key (first .Values.list)) }}`},
		"an object that is rejected":    {"templates/x.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: \"{{ .Values.ip }}\", ports: [{port: 80}]}\n"},
		"a hook that is rejected":       {"templates/x.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s, annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}}\nspec: {clusterIP: \"{{ .Values.ip }}\", ports: [{port: 80}]}\n"},
		"values that are rejected":      {"values.schema.json": `{"properties": {"password": {"enum": ["x"]}, "key": {"maxLength": 3}, "list": {"items": {"pattern": "^x$"}}, "nested": {"properties": {"json": {"const": "y"}}}}}`},
		"a document that is not YAML":   {"templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: {{ .Values.password }}: {{ .Values.ip }}\n"},
		"a label that is not a string":  {"templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {a: {b: \"{{ .Values.password }}\"}}}\n"},
		"a number in the wrong place":   {"templates/x.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: {{ .Values.number }}}]}\n"},
		"a dependency with bad imports": {"templates/x.yaml": `{{ index .Values.list 5 }}`},
	}
	unserved := charttest.Files{"templates/x.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: x}\nspec: {a: \"{{ .Values.password }}\"}\n"}
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\nstringData: {password: \"{{ .Values.password }}\", key: {{ .Values.key | quote }}}\n"

	for _, mode := range []string{"Helm mode", "manifest mode"} {
		It("appear neither in logs nor in events, metrics, statuses, errors and descriptions, in "+mode+" [Ex25]", func(ctx SpecContext) {
			out := &output{}
			w := newWorld(ctx, func(w *world) {
				w.log = funcr.New(out.add, funcr.Options{Verbosity: 7}) // client-go logs whole requests at level 8
			})
			configuration := w.helmMode
			if mode == "manifest mode" {
				configuration = w.manifestMode
			}
			files := simple.With(charttest.Files{"templates/secret.yaml": secret})
			Expect(w.deploy(ctx, "item", configuration(files, values, nil))).To(beSucceeded())
			for name, failure := range failures {
				By(name)
				w.update(ctx, "item", configuration(files.With(failure), values, nil))
			}
			w.trigger(ctx, "item", configuration(files.With(unserved), values, nil))
			Eventually(w.condition(ctx, "item", "Waiting")).Should(ContainSubstring("Widget"))
			w.edit(ctx, "colors", func(cm *corev1.ConfigMap) { cm.Data["color"] = "green" })
			text := out.all(ctx, w)
			Expect(text).To(ContainSubstring("Service"), "the output contains the errors")
			for line := range strings.Lines(text) {
				Expect(line).NotTo(Or(ContainSubstring(canary), ContainSubstring("8675309"), ContainSubstring("YzRuNHJ5")))
			}
		})
	}

	It("appear neither in the plan nor in its errors [Ex25]", func(ctx SpecContext) {
		w := newWorld(ctx)
		for name, failure := range failures {
			files := simple.With(charttest.Files{"templates/secret.yaml": secret}).With(failure)
			item := w.landscaper.Item(w.namespace, "item", w.itemType, w.helmMode(files, values, nil))
			plan, err := helm.Plan(ctx, w, cp.Config, nil, item, helm.Options{})
			Expect(fmt.Sprint(plan, err)).NotTo(Or(ContainSubstring(canary), ContainSubstring("YzRuNHJ5"), ContainSubstring("8675309")), name)
		}
	})
})

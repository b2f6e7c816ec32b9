// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
)

var _ = Describe("Examples of exports", func() {
	It("exports contain values, references and nested keys, and the Secret is deleted when no exports remain [D14, H-33]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		di := w.runSuccessfully(ctx, "exports")
		service := &corev1.Service{}
		Expect(w.hasObject(ctx, service, "database")).To(BeTrue())
		Expect(w.readExport(ctx, di)).To(Equal(map[string]any{
			"database": map[string]any{"host": service.Spec.ClusterIP, "port": 5432.0, "password": "c2VjcmV0"},
			"labels":   map[string]any{"app.kubernetes.io/name": "database"},
		}))
		Expect(di.Status.ExportReference.Name).To(Equal("exports-export"))
		secret := &corev1.Secret{}
		Expect(w.hasObject(ctx, secret, "exports-export")).To(BeTrue())
		Expect(secret.OwnerReferences).To(ConsistOf(HaveField("UID", di.UID)))

		di = w.Update(ctx, "exports", removeField(di.Spec.Configuration.Raw, "exports"))
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(di.Status.ExportReference).To(BeNil())
		Expect(w.hasObject(ctx, &corev1.Secret{}, "exports-export")).To(BeFalse())
	}, SpecTimeout(5*time.Minute))

	It("the next job restores exports that another client has changed or deleted [F74]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.runSuccessfully(ctx, "exports")
		w.VerifyExportRestored(ctx, "exports", w.RunAgain)
	}, SpecTimeout(5*time.Minute))

	It("exports read from another target, and wait for a value that does not exist yet [D14]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.CreateTarget(ctx, "second", cp.Kubeconfig())
		w.createExample(ctx, "export-elsewhere")
		w.waitForReason(ctx, "export-elsewhere", `export "gate": ConfigMap `+w.Namespace+"-second/gate does not exist")
		w.createGate(ctx)
		di := w.Finished(ctx, "export-elsewhere")
		Expect(w.readExport(ctx, di)).To(Equal(map[string]any{"gate": map[string]any{"open": "yes"}}))
	}, SpecTimeout(5*time.Minute))

	It("a missing value fails the item after the timeout of the export, and the error names the value [D14]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		di := w.run(ctx, "export-timeout")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Message).To(ContainSubstring("export address: not done within 1s: export \"address\": Service " + w.Namespace + "/database does not exist"))
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
		Expect(di.Status.ExportReference).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("exports contain values that the item has just written, although the target responds with older data [D14]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		network := faultnet.Start(GinkgoTB(), faultnet.Scenario{Rules: []faultnet.Rule{{
			Match: faultnet.Match{Verb: "get", Resource: "configmaps", Name: "cm-0"}, Nth: 2, Fault: faultnet.Stale(1),
		}}})
		w.options.WrapTransport = network.Transport
		w.start()
		exporting := map[string]any{"exports": map[string]any{"exports": []any{map[string]any{
			"key": "value", "jsonPath": ".data.key",
			"fromResource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.Namespace, "name": "cm-0"},
		}}}}
		Expect(w.readExport(ctx, w.CreateAndRun(ctx, "item", config(exporting, w.configMaps(1, "a")...)))).To(Equal(map[string]any{"value": "a"}))
		di := w.Update(ctx, "item", config(exporting, w.configMaps(1, "b")...))
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(w.readExport(ctx, di)).To(Equal(map[string]any{"value": "b"}))
	}, SpecTimeout(5*time.Minute))
})

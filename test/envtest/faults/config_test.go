// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// settings is the Go type of spec.config in these specs.
type settings struct {
	Replicas int    `json:"replicas,omitempty"`
	Text     string `json:"text,omitempty"`
}

// decodeStrict is the answer of the fake deployer. It only decodes the configuration.
func decodeStrict(_ context.Context, in landscapertest.Input) error {
	_, err := deployerlib.DecodeConfigAs[settings](in.Item, schema.GroupVersionKind{Group: "faults.deployerkit.dev", Version: "v1", Kind: "Config"})
	return err
}

// newConfigBody returns the constant `config` with the given members added to the JSON object.
func newConfigBody(members string) string {
	return strings.TrimSuffix(config, "}") + "," + members + "}"
}

// expectConfigError requires that a finished item shows a clear error: the phase Failed, the code
// ERR_CONFIGURATION_PROBLEM, and a message of one line that contains the path of the field.
func expectConfigError(di *lsv1alpha1.DeployItem, path string) {
	GinkgoHelper()
	Expect(di.Status.Phase).To(Equal(phases.Failed))
	e := di.Status.LastError
	Expect(e).NotTo(BeNil())
	Expect(e.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
	oneLine(e.Message)
	Expect(e.Message).To(ContainSubstring(path))
	Expect(e.Operation).NotTo(BeEmpty())
	Expect(e.Reason).NotTo(BeEmpty())
}

func oneLine(text string) {
	GinkgoHelper()
	Expect(text).NotTo(BeEmpty())
	Expect(text).NotTo(ContainSubstring("\n"))
	Expect(len(text)).To(BeNumerically("<=", 1024))
}

var _ = Describe("Invalid spec.config", func() {
	for _, revision := range both {
		DescribeTable(addRevision("an invalid configuration ends the run with an error that names the problem, and a valid one succeeds", revision),
			func(ctx SpecContext, raw, path string) {
				w := newEnv(ctx, revision)
				w.fake.SetDefaultAnswer(contract.ActionReconcile, decodeStrict)
				w.start()
				key := w.createAndStart(ctx, "item", func(di *lsv1alpha1.DeployItem) {
					di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(raw)}
					if raw == "" {
						di.Spec.Configuration = nil
					}
				})
				expectConfigError(w.finished(ctx, key), path)
				Expect(w.Landscaper.Update(ctx, key, newConfigBody(`"replicas":3,"repilcas":null`))).To(Succeed())
				Expect(world.RevisionOf(revision).Request(ctx, w.Landscaper, key)).To(Succeed())
				healed := w.waitFor(ctx, key, func(di *lsv1alpha1.DeployItem) bool { return di.Status.Phase == phases.Succeeded })
				Expect(healed.Status.LastError).To(BeNil())
			},
			Entry("the configuration is missing", "", "spec.config: required"),
			Entry("the configuration is of another kind", `{"apiVersion":"example.com/v2","kind":"Other"}`, "spec.config"),
			Entry("the configuration has an unknown field", newConfigBody(`"repilcas":3`), "repilcas"),
			Entry("a field has the wrong type", newConfigBody(`"replicas":"three"`), "replicas"),
			Entry("a configuration of 1 MiB has an unknown field", newConfigBody(`"repilcas":"`+strings.Repeat("x", 1<<20)+`"`), "repilcas"),
		)
	}

	It("the last value of a duplicate field is used, because the API server accepts duplicates", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
			got, err := deployerlib.DecodeConfig[settings](in.Item)
			if err == nil && got.Text != "b" {
				err = fmt.Errorf("text is %q", got.Text)
			}
			return err
		})
		w.start()
		key := w.createAndStart(ctx, "item", func(di *lsv1alpha1.DeployItem) {
			di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(newConfigBody(`"text":"a","text":"b"`))}
		})
		Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
	}, SpecTimeout(5*time.Minute))

	It("a configuration of 1 MiB reaches the deployer", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.fake.SetDefaultAnswer(contract.ActionReconcile, decodeStrict)
		w.start()
		key := w.createAndStart(ctx, "item", func(di *lsv1alpha1.DeployItem) {
			di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(newConfigBody(`"text":"` + strings.Repeat("x", 1<<20) + `"`))}
		})
		Expect(w.finished(ctx, key).Status.Phase).To(Equal(phases.Succeeded))
	}, SpecTimeout(5*time.Minute))

	It("an item without a configuration can be deleted [C13]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		key := w.createAndStart(ctx, "item", func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = nil })
		expectConfigError(w.finished(ctx, key), "spec.config")
		Expect(w.Landscaper.Delete(withTimeout(ctx, patience), key)).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	// These configurations never reach a deployer, because the API server rejects them.
	DescribeTable("the API server rejects an invalid configuration", func(ctx SpecContext, raw string) {
		w := newEnv(ctx, contract.RevisionJobID)
		cfg := rest.CopyConfig(cp.Config)
		cfg.GroupVersion, cfg.APIPath = &lsv1alpha1.SchemeGroupVersion, "/apis"
		scheme, err := landscapertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme)
		c, err := rest.RESTClientFor(cfg)
		Expect(err).NotTo(HaveOccurred())
		text := fmt.Sprintf(`{"apiVersion":"landscaper.gardener.cloud/v1alpha1","kind":"DeployItem","metadata":{"name":"item"},"spec":{"type":%q,"config":%s}}`, w.Type, raw)
		err = c.Post().Namespace(w.Namespace).Resource("deployitems").SetHeader("Content-Type", "application/json").Body([]byte(text)).Do(ctx).Error()
		Expect(apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)).To(BeTrue(), "the error is %v", err)
	},
		Entry("the configuration is not valid JSON", `{"apiVersion":`),
		Entry("the configuration is an empty object", `{}`),
		Entry("the configuration is not an object", `"text"`),
		Entry("the configuration has no kind", `{"apiVersion":"faults.deployerkit.dev/v1"}`),
	)
})

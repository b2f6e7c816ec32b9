// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
)

// readOnly is a transport that rejects writes, except dry runs.
type readOnly struct{ http.RoundTripper }

func (t readOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" {
		return nil, fmt.Errorf("%s %s is not a dry run", r.Method, r.URL.Path)
	}
	return t.RoundTripper.RoundTrip(r)
}

var _ = Describe("Plan", func() {
	It("lists the changes, the hooks and the revision, and writes nothing [Ex34]", func(ctx SpecContext) {
		w := newWorld(ctx)
		config := rest.CopyConfig(cp.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
		files := simple.With(charttest.Files{
			"templates/h.yaml": hook("before", "pre-upgrade", ""), "templates/i.yaml": hook("first", "post-install", ""),
			"templates/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: \"{{ .Values.password }}\"}\n",
			"crds/a.yaml":      definition(w.namespace + ".example.com"),
		})
		item := w.landscaper.Item(w.namespace, "item", w.itemType, w.helmMode(files, map[string]any{"password": "s3cr3t"}, nil))
		plan, err := helm.Plan(ctx, w, config, nil, item, helm.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Revision).To(Equal(1))
		Expect(plan.Hooks).To(Equal([]string{"post-install Pod first"}))
		Expect(plan.CRDs).To(Equal([]string{"widgets." + w.namespace + ".example.com"}))
		Expect(plan.Unstable).To(BeFalse())
		Expect(plan.CountChanges()).To(Equal(3))
		Expect(plan.String()).To(HavePrefix("chart test 1.0.0\nrevision 1\n"))

		By("planning an upgrade of a chart with a random value")
		Expect(w.deploy(ctx, "item", w.helmMode(simple.With(charttest.Files{"templates/s.yaml": files["templates/s.yaml"]}), map[string]any{"password": "s3cr3t"}, nil))).To(beSucceeded())
		files["templates/a.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colors}\ndata: {color: \"{{ randAlpha 5 }}\"}\n"
		delete(files, "templates/b.yaml")
		item, err = w.landscaper.Get(ctx, w.key("item"))
		Expect(err).NotTo(HaveOccurred())
		item.Spec.Configuration = w.landscaper.Item(w.namespace, "item", w.itemType, w.helmMode(files, map[string]any{"password": "an0ther-s3cr3t"}, nil)).Spec.Configuration
		plan, err = helm.Plan(ctx, w, config, nil, item, helm.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Revision).To(Equal(2))
		Expect(plan.Hooks).To(Equal([]string{"pre-upgrade Pod before"}))
		Expect(plan.CRDs).To(BeEmpty())
		Expect(plan.Unstable).To(BeTrue())
		Expect(plan.CountChanges()).To(Equal(3), "two objects change, and one is deleted: %s", plan)
		Expect(plan.String()).NotTo(ContainSubstring("s3cr3t"))
	})
})

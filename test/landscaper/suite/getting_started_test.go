// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"bytes"
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gettingstarted "github.com/deployerkit/deployerkit/examples/getting-started"
)

// applyFile creates the objects in a file of the guide without changing them.
func applyFile(ctx context.Context, name string) {
	GinkgoHelper()
	file, err := gettingstarted.Files.ReadFile(name)
	Expect(err).NotTo(HaveOccurred())
	for document := range bytes.SplitSeq(file, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		Expect(yaml.UnmarshalStrict(document, object)).To(Succeed())
		Expect(c.Create(ctx, object)).To(Succeed())
	}
}

var _ = Describe("Getting started guide", func() {
	It("one Installation exports a password, and another one imports it [F48]", func(ctx SpecContext) {
		const namespace = "getting-started"
		key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: name} }
		succeeds := func(name string) {
			GinkgoHelper()
			in := &lsv1alpha1.Installation{}
			Eventually(func(g Gomega) {
				g.Expect(c.Get(ctx, key(name), in)).To(Succeed())
				g.Expect(in.Status.JobID).NotTo(BeEmpty())
				g.Expect(in.Status.InstallationPhase).To(Equal(lsv1alpha1.InstallationPhases.Succeeded), "lastError: %+v", in.Status.LastError)
			}, patience).Should(Succeed())
		}
		applyFile(ctx, "cluster.yaml")
		Expect(c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workload"}, Data: map[string][]byte{"kubeconfig": cp.Kubeconfig()},
		})).To(Succeed())
		applyFile(ctx, "password.yaml")
		applyFile(ctx, "app.yaml")
		succeeds("password")
		succeeds("app")
		data, secret := &lsv1alpha1.DataObject{}, &corev1.Secret{}
		Expect(c.Get(ctx, key("app-password"), data)).To(Succeed())
		Expect(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "app"}, secret)).To(Succeed())
		Expect(`"` + string(secret.Data["password"]) + `"`).To(Equal(string(data.Data.RawMessage)))

		for _, name := range []string{"app", "password"} {
			in := &lsv1alpha1.Installation{}
			Expect(c.Get(ctx, key(name), in)).To(Succeed())
			Expect(c.Delete(ctx, in)).To(Succeed())
			Eventually(func() error { return c.Get(ctx, key(name), in) }, patience).Should(MatchError(ContainSubstring("not found")))
		}
		Expect(c.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(MatchError(ContainSubstring("not found")))
	})
})

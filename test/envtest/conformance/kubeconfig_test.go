// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/contract/conformance"
	"github.com/deployerkit/deployerkit/deployerlib/deployertest"
	"github.com/deployerkit/deployerkit/test/envtest"
)

var _ = Describe("a cluster of the caller", func() {
	It("is used under the revision that it knows, by a program, and left clean", func(ctx SpecContext) {
		cp, err := envtest.Start(ctx, envtest.Options{Progress: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cp.Stop)
		scheme, err := deployertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(cp.Config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		subject := mockCommand()
		subject.Kubeconfig, err = cp.KubeconfigFile("")
		Expect(err).NotTo(HaveOccurred())
		subject.Exceptions = []conformance.Exception{{Check: "interrupt", Revision: contract.JobID, Reason: "to be seen in the report"}}

		report, err := conformance.Execute(ctx, subject)
		Expect(err).NotTo(HaveOccurred())
		Expect(report.WriteTable(GinkgoWriter)).To(Succeed())
		Expect(report.Err()).NotTo(HaveOccurred())
		for _, result := range report.Results {
			switch {
			case result.Revision == contract.Annotation:
				Expect(result.Outcome).To(Equal(conformance.NotApplicable))
				Expect(result.Seen).To(Equal("the cluster's definitions are those of the job-id revision"))
			case result.Check.Name == "other-target":
				Expect(result.Seen).To(Equal("the subject takes all Targets"))
			case result.Check.Name == "interrupt":
				Expect(result.Seen).To(Equal("exception: to be seen in the report"))
			default:
				Expect(result.Outcome).To(Equal(conformance.Pass), result.Check.Name)
			}
		}

		items := &lsv1alpha1.DeployItemList{}
		Expect(c.List(ctx, items)).To(Succeed())
		Expect(items.Items).To(BeEmpty())
		namespaces := &corev1.NamespaceList{}
		Expect(c.List(ctx, namespaces)).To(Succeed())
		for _, ns := range namespaces.Items {
			if ns.GenerateName != "" {
				Expect(ns.DeletionTimestamp).NotTo(BeNil(), ns.Name)
			}
		}
	})
})

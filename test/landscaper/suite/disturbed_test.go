// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
	"github.com/deployerkit/deployerkit/test/landscaper/scenario"
)

var _ = Describe("Installation during a disturbance", Ordered, ContinueOnFailure, func() {
	run := func(ctx context.Context, s scenario.Scenario, namespace string) {
		GinkgoHelper()
		result, err := runner.Run(ctx, s, namespace)
		Expect(err).NotTo(HaveOccurred())
		addReport(result)
		Expect(result.Failure).To(BeEmpty())
	}

	It("succeeds although the deployer is killed", func(ctx SpecContext) {
		run(ctx, scenario.NewDisturbed("the deployer is killed", func(context.Context) error {
			killDeployer("manifest")
			start("manifest", "manifest")
			return nil
		}), "killed")
	})

	It("succeeds although Landscaper is killed", func(ctx SpecContext) {
		run(ctx, scenario.NewDisturbed("Landscaper is killed", ls.Restart), "restarted")
	})

	It("succeeds with a second replica when the leader is killed", func(ctx SpecContext) {
		start("second", "manifest")
		DeferCleanup(func() {
			killDeployer("second")
			start("manifest", "manifest")
		})
		before := leader(ctx)
		run(ctx, scenario.NewDisturbed("the leader is killed", func(context.Context) error {
			killDeployer("manifest")
			return nil
		}), "replicas")
		Expect(leader(ctx)).NotTo(Equal(before), "the second replica leads")
	})

	It("changes from Landscaper's deployer to DeployerKit and back, and no object is lost or created again", func(ctx SpecContext) {
		killDeployer("manifest")
		DeferCleanup(func() { start("manifest", "manifest") })
		theirs, err := ls.StartDeployer(ctx, landscaper.ManifestDeployer, access)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return theirs.Stop() })
		toOurs := func(ctx context.Context) error {
			if err := theirs.Stop(); err != nil {
				return err
			}
			before := getLeaseHolder(ctx)
			start("migrated", "manifest")
			Eventually(getLeaseHolder, patience).WithContext(ctx).ShouldNot(BeElementOf("", before))
			return nil
		}
		back := func(ctx context.Context) error {
			killDeployer("migrated")
			var err error
			theirs, err = ls.StartDeployer(ctx, landscaper.ManifestDeployer, access)
			return err
		}
		DeferCleanup(func() { killDeployer("migrated") })
		run(ctx, scenario.NewMigration(toOurs, back), "migration")
	})
})

// leader waits until a replica of the manifest deployer holds the lease, and returns the identity of the replica.
func leader(ctx context.Context) (id string) {
	GinkgoHelper()
	Eventually(func() string {
		id = getLeaseHolder(ctx)
		return id
	}, patience).ShouldNot(BeEmpty())
	return id
}

// getLeaseHolder returns the identity in the lease, or "" if there is none.
func getLeaseHolder(ctx context.Context) string {
	list := &coordinationv1.LeaseList{}
	if err := c.List(ctx, list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return ""
	}
	for _, lease := range list.Items {
		if strings.HasPrefix(lease.Name, "manifest.deployer.") && lease.Spec.HolderIdentity != nil {
			return *lease.Spec.HolderIdentity
		}
	}
	return ""
}

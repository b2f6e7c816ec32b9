// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const typ lsv1alpha1.DeployItemType = "example.com/kit"

var (
	phases = lsv1alpha1.DeployItemPhases
	config = map[string]any{"apiVersion": "v1", "kind": "Config"}
)

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

var _ = Describe("Landscaper of package landscapertest", func() {
	for revision, crds := range map[contract.Revision]func() []*apiextv1.CustomResourceDefinition{
		contract.RevisionJobID: controlplane.CRDs, contract.RevisionAnnotation: controlplane.AnnotationRevisionCRDs,
	} {
		Describe("under the "+string(revision)+" revision", Ordered, func() { describeLifecycle(revision, crds) })
	}
})

// describeLifecycle defines a spec for one revision. In this spec, items are created, run and deleted.
func describeLifecycle(revision contract.Revision, crds func() []*apiextv1.CustomResourceDefinition) {
	var (
		fake    *landscapertest.Fake
		counter *faultnet.Counter
		ls      *landscapertest.Landscaper
		mgr     *landscapertest.Manager
	)
	BeforeAll(func(ctx SpecContext) {
		cp, c := start(ctx, crds())
		counter, fake = &faultnet.Counter{}, landscapertest.NewFake()
		ls = landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: revision, ManagedBy: "exec", Pickup: 2 * time.Second})
		mgr = landscapertest.StartManager(GinkgoTB(), counter.Wrap(cp.Config), deployerlib.DeployerArgs{Type: typ, Deployer: fake})
	})
	AfterAll(func() { Expect(fake.OverlappingCalls()).To(BeEmpty()) })

	It("deploys, updates and deletes an item within the budget of requests", func(ctx SpecContext) {
		key := keyOf("whole")
		before := counter.Snapshot()
		Expect(ls.Deploy(ctx, ls.Item(key.Namespace, key.Name, typ, config))).To(Succeed())
		di, err := ls.WaitUntilFinished(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		Expect(ls.Update(ctx, key, map[string]any{"apiVersion": "v1", "kind": "Config", "a": 1})).To(Succeed())
		Expect(world.RevisionOf(revision).Request(ctx, ls, key)).To(Succeed())
		_, err = ls.WaitFor(ctx, key, func(di *lsv1alpha1.DeployItem) (bool, error) {
			return di.Status.ObservedGeneration == di.Generation && di.Status.Phase == phases.Succeeded, nil
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(ls.Delete(ctx, key)).To(Succeed())
		Expect(fake.CountCalls(key, contract.ActionReconcile)).To(Equal(2))
		Expect(fake.CountCalls(key, contract.ActionDelete)).To(Equal(1))
		sent := counter.Snapshot().Since(before).ForObject("deployitems", key.Namespace, key.Name)
		Expect(sent.OnlyReads().Sum()).To(BeZero(), sent.String())
		Expect(sent.OnlyWrites().Sum()).To(BeNumerically("<=", 8), sent.String())
	}, SpecTimeout(5*time.Minute))

	It("fails an item that no deployer picks up", func(ctx SpecContext) {
		key := keyOf("orphan")
		Expect(ls.Deploy(ctx, ls.Item(key.Namespace, key.Name, "example.com/other", config))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(ls.ApplyTimeouts(ctx, key.Namespace)).To(Succeed())
			di, err := ls.Get(ctx, key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(di.Status.Phase).To(Equal(phases.Failed))
			g.Expect(di.Status.LastError.Reason).To(Equal(lsv1alpha1.PickupTimeoutReason))
		}).WithContext(ctx).WithTimeout(20 * time.Second).Should(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("interrupts a running call", func(ctx SpecContext) {
		key := keyOf("stopped")
		fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		Expect(ls.Deploy(ctx, ls.Item(key.Namespace, key.Name, typ, config))).To(Succeed())
		_, err := fake.WaitForCall(ctx, key, contract.ActionReconcile, 1)
		Expect(err).NotTo(HaveOccurred())
		Expect(world.RevisionOf(revision).Interrupt(ctx, ls, key)).To(Succeed())
		_, err = fake.WaitForReturn(ctx, key, contract.ActionAbort, 1)
		Expect(err).NotTo(HaveOccurred())
		di, err := ls.WaitUntilFinished(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(phases.Failed))
	}, SpecTimeout(5*time.Minute))

	It("receives no write from a killed manager", func(ctx SpecContext) {
		key := keyOf("killed")
		release := make(chan struct{})
		fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockIgnoringContext(release))
		Expect(ls.Deploy(ctx, ls.Item(key.Namespace, key.Name, typ, config))).To(Succeed())
		_, err := fake.WaitForCall(ctx, key, contract.ActionReconcile, 1)
		Expect(err).NotTo(HaveOccurred())
		mgr.Kill()
		close(release)
		_, err = fake.WaitForReturn(ctx, key, contract.ActionReconcile, 1)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, mgr.Done()).WithTimeout(40 * time.Second).Should(BeClosed())
		di, err := ls.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(phases.Init))
	}, SpecTimeout(8*time.Minute))
}

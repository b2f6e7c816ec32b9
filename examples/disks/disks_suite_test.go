// SPDX-License-Identifier: Apache-2.0

package disks_test

import (
	"context"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/examples/disks"
	"github.com/deployerkit/deployerkit/landscapertest"
)

func TestDisks(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	RunSpecs(t, "disks")
}

// cfg is the config for the control plane that all specs use.
var cfg *rest.Config

var _ = BeforeSuite(func(ctx SpecContext) {
	cp, err := controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	cfg = cp.Config
})

var _ = Describe("Disk deployer", func() {
	for _, revision := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		It("rents a disk, restores a lost disk because of its hook, and returns the disk, under the "+string(revision)+" revision [L58]", func(ctx SpecContext) {
			ns := "disks-" + strings.ToLower(string(revision))
			c := newClient(ctx, ns)
			ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: revision})
			cloud := disks.NewCloud()
			mgr := start(cloud, ns)

			di := item(ls, ns, 10)
			key := client.ObjectKeyFromObject(di)
			Expect(ls.Deploy(ctx, di)).To(Succeed())
			By("waiting for the cloud, which wakes the item")
			_, err := ls.WaitForPhase(ctx, key, lsv1alpha1.DeployItemPhases.Progressing)
			Expect(err).NotTo(HaveOccurred())
			cloud.SetReady()
			_, err = ls.WaitForPhase(ctx, key, lsv1alpha1.DeployItemPhases.Succeeded)
			Expect(err).NotTo(HaveOccurred())
			Expect(cloud.ListDisks()).To(ConsistOf(disks.Disk{Region: "eu", Size: 10, Ready: true}))

			By("losing the disk after a restart")
			mgr.Stop()
			start(cloud, ns)
			cloud.RemoveAll()
			Eventually(cloud.ListDisks, "30s").Should(HaveLen(1))
			cloud.SetReady()

			By("deleting the item")
			Expect(ls.Delete(ctx, key)).To(Succeed())
			Expect(cloud.ListDisks()).To(BeEmpty())
		})
	}

	It("fails an item with an invalid configuration at once", func(ctx SpecContext) {
		c := newClient(ctx, "disks-wrong")
		ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})
		start(disks.NewCloud(), "disks-wrong")
		di := item(ls, "disks-wrong", disks.MaxSize+1)
		Expect(ls.Deploy(ctx, di)).To(Succeed())
		done, err := ls.WaitUntilFinished(ctx, client.ObjectKeyFromObject(di))
		Expect(err).NotTo(HaveOccurred())
		Expect(done.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Failed))
		Expect(done.Status.LastError.Message).To(ContainSubstring("spec.config.size: no disk is that large: at most 1000"))
		Expect(done.Status.LastError.Codes).To(ConsistOf(lsv1alpha1.ErrorConfigurationProblem))
	})
})

// newClient creates a namespace with a Target, and returns a client.
func newClient(ctx context.Context, ns string) client.Client {
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
	target := &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "europe"},
		Spec:       lsv1alpha1.TargetSpec{Type: "example.org/region", Configuration: lsv1alpha1.NewAnyJSONPointer([]byte(`{"region":"eu"}`))},
	}
	Expect(c.Create(ctx, target)).To(Succeed())
	return c
}

// start runs the deployer for the items of one namespace until the spec ends.
func start(cloud *disks.Cloud, ns string) *landscapertest.Manager {
	return landscapertest.StartManager(GinkgoTB(), cfg, deployerlib.DeployerArgs{
		Type: disks.Type, Deployer: disks.New(cloud),
	}, landscapertest.WithOptions(func(o *ctrl.Options) { o.Cache.DefaultNamespaces = map[string]cache.Config{ns: {}} }))
}

// item returns a deploy item that requests a disk of the given size in the Target "europe".
func item(ls *landscapertest.Landscaper, ns string, size int) *lsv1alpha1.DeployItem {
	di := ls.Item(ns, "disk", disks.Type, map[string]any{"apiVersion": "disk.example.org/v1", "kind": "DiskConfig", "size": size})
	di.Spec.Target = &lsv1alpha1.ObjectReference{Namespace: ns, Name: "europe"}
	return di
}

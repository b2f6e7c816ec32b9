// SPDX-License-Identifier: Apache-2.0

package porting_test

import (
	"context"
	"errors"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/examples/porting"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var (
	phases = lsv1alpha1.DeployItemPhases
	config = map[string]any{"apiVersion": "porting.example.org/v1", "kind": "ProviderConfiguration"}
)

var _ = Describe("Ported deployers", func() {
	for _, revision := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		Context("under the "+string(revision)+" revision", func() {
			var w *world.World
			start := func(port func(c client.Client) deployerlib.Deployer) {
				GinkgoHelper()
				w.Start(deployerlib.DeployerArgs{Name: "ported", Deployer: port(w.Client)})
			}
			BeforeEach(func(ctx SpecContext) { w = newWorld(ctx, revision) })

			It("a deployer that keeps its state in the phase starts once, is called again, and uninstalls once [F44]", func(ctx SpecContext) {
				calls := make(chan lsv1alpha1.DeployItemPhase, 100)
				start(func(c client.Client) deployerlib.Deployer {
					return deployerlib.Port(counting{Container: &porting.Container{Host: c}, calls: calls}, nil)
				})
				w.Create(ctx, "item", config)
				Expect(receivePhases(ctx, calls, 4)).To(Equal([]lsv1alpha1.DeployItemPhase{phases.Init, phases.Progressing, phases.Progressing, phases.Progressing}))
				completePods(ctx, w)
				Expect(w.Finished(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))

				go func() {
					defer GinkgoRecover()
					Eventually(func(g Gomega) { g.Expect(listPods(ctx, w)).To(HaveLen(2)) }).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
					completePods(ctx, w)
				}()
				w.Delete(ctx, "item")
				Expect(listPods(ctx, w)).To(HaveLen(2), "one to deploy, and one to uninstall")
			})

			for _, removal := range []string{"in memory", "through the API"} {
				It("a deployer that removes the finalizer itself "+removal+" is called once for a deletion [F44]", func(ctx SpecContext) {
					start(func(c client.Client) deployerlib.Deployer {
						helm := &porting.Helm{Target: c}
						if removal == "through the API" {
							helm.Landscaper = c
						}
						return deployerlib.Port(helm, nil)
					})
					Expect(w.CreateAndRun(ctx, "item", config).Status.Phase).To(Equal(phases.Succeeded))
					w.Delete(ctx, "item")
					Expect(w.Client.Get(ctx, w.Key("release-item"), &corev1.ConfigMap{})).NotTo(Succeed())
				})
			}

			It("a deployer that waits for its target as in the guide is called again [F44]", func(ctx SpecContext) {
				pool := targets.NewPool(targets.PoolOptions{Policy: targets.Policy{AllowPrivateHosts: true}})
				DeferCleanup(pool.Close)
				looks := 0
				start(func(c client.Client) deployerlib.Deployer {
					return deployerlib.Port(&porting.After{
						Client: c, Pool: pool, Next: func(context.Context, time.Time, *lsv1alpha1.DeployItem) (*time.Time, error) { return nil, nil },
						IsDone: func(context.Context, client.Client) (bool, error) { looks++; return looks > 1, nil },
						Work: func(ctx context.Context, d *porting.After, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
							if err := d.Ready(ctx, target); err != nil {
								return err
							}
							return errors.Join(d.Export(ctx, di), d.ProviderStatus(di, map[string]string{"disk": "d1"}), d.Status(di))
						},
					}, nil)
				})
				status := w.CreateAndRun(ctx, "item", config).Status
				Expect(status.Phase).To(Equal(phases.Succeeded))
				Expect(string(status.ProviderStatus.Raw)).To(ContainSubstring("d1"))
				Expect(looks).To(Equal(2))
			})

			It("a deployer that writes its status itself fails the item with an explanation [F44]", func(ctx SpecContext) {
				start(func(c client.Client) deployerlib.Deployer { return deployerlib.Port(&porting.Mock{Status: c}, nil) })
				w.Create(ctx, "item", config)
				Eventually(func(g Gomega) {
					status := w.ReadItem(ctx, "item")(g).Status
					g.Expect(status.LastError).NotTo(BeNil())
					g.Expect(status.LastError.Message).To(ContainSubstring("with a client of its own"))
					g.Expect(status.Phase).To(Equal(phases.Failed))
					g.Expect(status.JobIDFinished).To(Equal(status.JobID))
				}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
			})

			It("a deployer of the annotation revision reads its Target, is forced, and deletes until no object remains [F44]", func(ctx SpecContext) {
				manifest := &porting.Manifest{}
				start(func(c client.Client) deployerlib.Deployer {
					manifest.Target = c
					return deployerlib.PortClassic(manifest, deployerlib.ClassicOptions{FailAfter: 5 * time.Minute})
				})
				Expect(w.CreateAndRun(ctx, "item", config).Status.Phase).To(Equal(phases.Succeeded))
				before := w.Read(ctx, "manifest-item")
				Expect(before.Data).To(HaveKey("kubeconfig"))
				Expect(w.Landscaper.SetOperation(ctx, w.Key("item"), lsv1alpha1.ForceReconcileOperation)).To(Succeed())
				Eventually(func(g Gomega) {
					g.Expect(w.ReadItem(ctx, "item")(g).Annotations).NotTo(HaveKey(lsv1alpha1.OperationAnnotation))
					g.Expect(w.Data(ctx, "manifest-item")(g)).To(HaveField("UID", Not(Equal(before.UID))))
				}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
				w.Delete(ctx, "item")
				Expect(w.Read(ctx, "manifest-item")).To(BeNil())
			})
		})
	}
})

// counting is a deployer that records the phases that Reconcile receives.
type counting struct {
	*porting.Container

	calls chan lsv1alpha1.DeployItemPhase
}

// Reconcile records the phase and calls the wrapped deployer.
func (c counting) Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	select {
	case c.calls <- di.Status.Phase:
	default: // the spec has already received the phases that it needs
	}
	return c.Container.Reconcile(ctx, lsCtx, di, target)
}

// receivePhases returns the phases that the first n calls received.
func receivePhases(ctx context.Context, calls <-chan lsv1alpha1.DeployItemPhase, n int) []lsv1alpha1.DeployItemPhase {
	GinkgoHelper()
	var got []lsv1alpha1.DeployItemPhase
	for range n {
		var phase lsv1alpha1.DeployItemPhase
		Eventually(ctx, calls).WithTimeout(world.Patience).Should(Receive(&phase))
		got = append(got, phase)
	}
	return got
}

// listPods returns the ConfigMaps that represent pods.
func listPods(ctx context.Context, w *world.World) []corev1.ConfigMap {
	GinkgoHelper()
	list := &corev1.ConfigMapList{}
	Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	return slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool { return cm.GenerateName == "" })
}

// completePods marks all pods as ended.
func completePods(ctx context.Context, w *world.World) {
	GinkgoHelper()
	for _, pod := range listPods(ctx, w) {
		pod.Data = map[string]string{"phase": string(corev1.PodSucceeded)}
		Expect(w.Client.Update(ctx, &pod)).To(Succeed())
	}
}

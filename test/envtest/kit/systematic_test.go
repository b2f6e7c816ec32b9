// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

var _ = Describe("Systematic tests of another deployer", func() {
	It("the systematic tests run the scenario with a fault at each possible point", func(ctx SpecContext) {
		t := GinkgoTB()
		cp, _ := start(ctx, controlplane.CRDs())
		cfg := cp.Config
		scheme, err := landscapertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		landscaper := client.WithFieldOwner(c, "landscaper")
		args := deployerlib.DeployerArgs{Type: typ, Deployer: landscapertest.NewFake()}

		// story creates, updates and deletes an item in its own namespace, with a deployer that the network may kill.
		story := func(network *faultnet.Network) (err error) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
			if err := c.Create(ctx, ns); err != nil {
				return err
			}
			history, err := conformance.Record(ctx, c, ns.Name, contract.RevisionJobID)
			if err != nil {
				return err
			}
			defer history.Stop()
			stop := landscapertest.RunWithRestart(t, network, func(n *faultnet.Network) *landscapertest.Manager {
				return landscapertest.StartManager(t, n.Wrap(cfg), args, landscapertest.WithOptions(func(o *ctrl.Options) {
					o.Cache.DefaultNamespaces = map[string]cache.Config{ns.Name: {}}
				}))
			})
			defer stop()
			ls, item := landscapertest.NewLandscaper(landscaper, landscapertest.LandscaperOptions{DeployerType: true}), types.NamespacedName{Namespace: ns.Name, Name: "item"}
			if err := ls.Deploy(ctx, ls.Item(item.Namespace, item.Name, args.Type, config)); err != nil {
				return err
			}
			if _, err := ls.WaitUntilFinished(ctx, item); err != nil {
				return err
			}
			// a check that no objects of the item are left could follow here
			if err := errors.Join(ls.Delete(ctx, item), history.Sync(ctx)); err != nil {
				return err
			}
			for _, fault := range history.ListViolations() {
				err = errors.Join(err, errors.New(fault))
			}
			return err
		}

		survey := func() []faultnet.Point {
			network := faultnet.Start(t, faultnet.Scenario{RecordPoints: true})
			Expect(story(network)).To(Succeed())
			return network.Report().Points
		}
		known := map[string]bool{}
		for _, point := range survey() {
			known[point.String()] = true
		}
		for _, point := range survey() {
			if !known[point.String()] {
				continue // not every run reaches this point, for example if the server ended a watch early
			}
			for _, fault := range point.SelectFaults() {
				rule, hit := point.NewRule(fault), false
				rule.Optional = true // if the run does not make this request, the loop tries again
				for try := 0; !hit && try < 5; try++ {
					network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{rule}})
					Expect(story(network)).To(Succeed(), "%s: %s", point, fault)
					hit = point.WasHit(network.Report())
				}
				Expect(hit).To(BeTrue(), "%s: %s: not reached", point, fault)
			}
		}
	}, SpecTimeout(10*time.Minute))
})

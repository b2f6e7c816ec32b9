// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// withEnvironment returns a function that restricts a deployer to the Targets of one environment.
func withEnvironment(environment string) func(*deployerlib.DeployerArgs) {
	return func(args *deployerlib.DeployerArgs) {
		args.TargetSelectors = []lsv1alpha1.TargetSelector{{
			Labels: []lsv1alpha1.Requirement{{Key: "environment", Operator: selection.Equals, Values: []string{environment}}},
		}}
	}
}

// withName returns a function that sets the name of a deployer.
func withName(name string) func(*deployerlib.DeployerArgs) {
	return func(args *deployerlib.DeployerArgs) { args.Name = name }
}

var _ = registerSpecs("Responsibility", func(e *cluster) {
	It("an item of another type is never written, regardless of the hooks [L24, L25, L43, C1]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.DuringResponsibilityCheckHook, landscapertest.ReturnResult(newContinueResult(), nil))
		w.run()
		w.createAndStart("a", func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "flow.deployerkit.dev/other" })
		w.runSuccessfully("mine")
		w.expectUnchanged("a")
		Expect(w.get("a").Status.Phase).To(BeEmpty())
		Expect(w.get("a").Finalizers).To(BeEmpty())
		Expect(w.listCalls("a")).To(BeEmpty())
	})

	DescribeTable("the Target of an item decides whether the deployer processes it [L24, C2]",
		func(ctx SpecContext, mods []itemOption, mine bool) {
			w := e.begin(ctx).registerAllHooks()
			w.createTarget("dev", map[string]string{"environment": "dev"})
			w.createTarget("prod", map[string]string{"environment": "prod"})
			w.run(withEnvironment("dev"))
			w.createAndStart("a", mods...)
			if mine {
				Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
				return
			}
			Eventually(func() []extension.HookType { return w.findReconcile(extension.DuringResponsibilityCheckHook) }).Should(Equal(toResponsibility))
			w.expectUnchanged("a")
			Expect(w.get("a").Status.Phase).To(BeEmpty())
		},
		Entry("an item whose Target matches is processed", []itemOption{withTarget("dev")}, true),
		Entry("an item whose Target does not match is not processed [L25]", []itemOption{withTarget("prod")}, false),
		Entry("an item without a Target is processed", nil, true),
		Entry("an item whose Target does not exist is not processed [L25, Lx9]", []itemOption{withTarget("gone")}, false),
	)

	It("an item of the deployer stays with it when its Target is deleted, with and without selectors [Lx9]", func(ctx SpecContext) {
		w := e.begin(ctx)
		target := w.createTarget("dev", map[string]string{"environment": "dev"})
		other := landscapertest.NewFake()
		args := w.args()
		withEnvironment("dev")(&args)
		rival := args
		withName("rival.deployerkit.dev")(&rival)
		rival.Deployer = other
		withEnvironment("prod")(&rival)
		w.start(args, rival)
		w.runSuccessfully("a", withTarget("dev"))
		Expect(w.client.Delete(ctx, target)).To(Succeed())
		w.startJob("a")
		di := w.waitUntil("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		Expect(di.Status.LastError.Message).To(ContainSubstring(`target "dev" not found`))
		Expect(di.Status.Deployer.Name).To(Equal("flow.deployerkit.dev"))
		Expect(other.ListCalls(w.key("a"))).To(BeEmpty())
	})

	It("a hook claims an item, and the deployer receives the Target of this item [L38, L42]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.DuringResponsibilityCheckHook, landscapertest.ReturnResult(newContinueResult(), nil))
		w.createTarget("prod", map[string]string{"environment": "prod"})
		w.run(withEnvironment("dev"))
		w.runSuccessfully("a", withTarget("prod"))
		Expect(w.fake.ListCalls(w.key("a"))[0].HasTarget).To(BeTrue())
		for _, call := range w.hooks.Calls() {
			if call.Type != extension.StartHook {
				Expect(call.Target.Name).To(Equal("prod"), string(call.Type))
			}
		}
	})

	It("a hook rejects an item, and the check decides if no hook returns a result [L39, L40, L44]", func(ctx SpecContext) {
		w := e.begin(ctx).registerAllHooks().setHook(extension.DuringResponsibilityCheckHook, landscapertest.ReturnResult(newAbortResult(50*time.Millisecond), nil))
		w.run()
		w.createAndStart("a")
		Eventually(func() int { return w.sumHookCalls(extension.DuringResponsibilityCheckHook) }).Should(BeNumerically(">", 3))
		w.expectUnchanged("a")
		Expect(w.sumHookCalls(extension.AfterResponsibilityCheckHook)).To(BeZero())
		w.setHook(extension.DuringResponsibilityCheckHook, nil)
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("the deployer is responsible if one of several hooks claims the item [L41]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.RegisterHook(w.hooks.NewHook("no"), extension.DuringResponsibilityCheckHook).RegisterHook(w.hooks.NewHook("yes"), extension.DuringResponsibilityCheckHook)
		w.hooks.SetHookAnswer("no", extension.DuringResponsibilityCheckHook, landscapertest.ReturnResult(newAbortResult(0), nil))
		w.hooks.SetHookAnswer("yes", extension.DuringResponsibilityCheckHook, landscapertest.ReturnResult(newContinueResult(), nil))
		w.run()
		w.runSuccessfully("a")
	})

	It("several deployers on one manager process only their own items [L1]", func(ctx SpecContext) {
		w := e.begin(ctx)
		other := landscapertest.NewFake()
		second := w.args()
		withName("second.deployerkit.dev")(&second)
		second.Type, second.Deployer = w.typ+"-second", other
		w.start(w.args(), second)
		w.runSuccessfully("a")
		w.runSuccessfully("b", func(di *lsv1alpha1.DeployItem) { di.Spec.Type = second.Type })
		Expect(w.listCalls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
		Expect(w.listCalls("b")).To(BeEmpty())
		Expect(other.CountCalls(w.key("b"), contract.ActionReconcile)).To(Equal(1))
		Expect(w.get("b").Status.Deployer.Name).To(Equal("second.deployerkit.dev"))
	})
})

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

// fenced returns a function that restricts a deployer to the Targets of one environment.
func fenced(environment string) func(*deployerlib.DeployerArgs) {
	return func(args *deployerlib.DeployerArgs) {
		args.TargetSelectors = []lsv1alpha1.TargetSelector{{
			Labels: []lsv1alpha1.Requirement{{Key: "environment", Operator: selection.Equals, Values: []string{environment}}},
		}}
	}
}

// named returns a function that sets the name of a deployer.
func named(name string) func(*deployerlib.DeployerArgs) {
	return func(args *deployerlib.DeployerArgs) { args.Name = name }
}

var _ = flow("Responsibility", func(e *cluster) {
	It("an item of another type is never written, regardless of the hooks [L24, L25, L43, C1]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().on(extension.DuringResponsibilityCheckHook, landscapertest.Returns(goOn(), nil))
		w.run()
		w.deploy("a", func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "flow.deployerkit.dev/other" })
		w.succeeds("mine")
		w.stays("a")
		Expect(w.get("a").Status.Phase).To(BeEmpty())
		Expect(w.get("a").Finalizers).To(BeEmpty())
		Expect(w.calls("a")).To(BeEmpty())
	})

	DescribeTable("the Target of an item decides whether the deployer processes it [L24, C2]",
		func(ctx SpecContext, mods []mod, mine bool) {
			w := e.begin(ctx).hookAll()
			w.target("dev", map[string]string{"environment": "dev"})
			w.target("prod", map[string]string{"environment": "prod"})
			w.run(fenced("dev"))
			w.deploy("a", mods...)
			if mine {
				Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
				return
			}
			Eventually(func() []extension.HookType { return w.passOf(extension.DuringResponsibilityCheckHook) }).Should(Equal(toResponsibility))
			w.stays("a")
			Expect(w.get("a").Status.Phase).To(BeEmpty())
		},
		Entry("a Target that matches", []mod{withTarget("dev")}, true),
		Entry("a Target that does not match [L25]", []mod{withTarget("prod")}, false),
		Entry("no Target", nil, true),
		Entry("a missing Target [L25, Lx9]", []mod{withTarget("gone")}, false),
	)

	It("an item of the deployer stays with it when its Target is deleted, with and without selectors [Lx9]", func(ctx SpecContext) {
		w := e.begin(ctx)
		target := w.target("dev", map[string]string{"environment": "dev"})
		other := landscapertest.NewFake()
		args := w.args()
		fenced("dev")(&args)
		rival := args
		named("rival.deployerkit.dev")(&rival)
		rival.Deployer = other
		fenced("prod")(&rival)
		w.start(args, rival)
		w.succeeds("a", withTarget("dev"))
		Expect(w.client.Delete(ctx, target)).To(Succeed())
		w.job("a")
		di := w.until("a", func(di *lsv1alpha1.DeployItem) bool { return di.Status.LastError != nil })
		Expect(di.Status.LastError.Message).To(ContainSubstring(`target "dev" not found`))
		Expect(di.Status.Deployer.Name).To(Equal("flow.deployerkit.dev"))
		Expect(other.Calls(w.key("a"))).To(BeEmpty())
	})

	It("a hook claims an item, and the deployer receives the Target of this item [L38, L42]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().on(extension.DuringResponsibilityCheckHook, landscapertest.Returns(goOn(), nil))
		w.target("prod", map[string]string{"environment": "prod"})
		w.run(fenced("dev"))
		w.succeeds("a", withTarget("prod"))
		Expect(w.fake.Calls(w.key("a"))[0].HasTarget).To(BeTrue())
		for _, call := range w.hooks.Calls() {
			if call.Type != extension.StartHook {
				Expect(call.Target.Name).To(Equal("prod"), string(call.Type))
			}
		}
	})

	It("a hook rejects an item, and the check decides if no hook returns a result [L39, L40, L44]", func(ctx SpecContext) {
		w := e.begin(ctx).hookAll().on(extension.DuringResponsibilityCheckHook, landscapertest.Returns(abort(50*time.Millisecond), nil))
		w.run()
		w.deploy("a")
		Eventually(func() int { return w.count(extension.DuringResponsibilityCheckHook) }).Should(BeNumerically(">", 3))
		w.stays("a")
		Expect(w.count(extension.AfterResponsibilityCheckHook)).To(BeZero())
		w.on(extension.DuringResponsibilityCheckHook, nil)
		Expect(w.finished("a").Status.Phase).To(Equal(phases.Succeeded))
	})

	It("the deployer is responsible if one of several hooks claims the item [L41]", func(ctx SpecContext) {
		w := e.begin(ctx)
		w.fake.Hook(w.hooks.Hook("no"), extension.DuringResponsibilityCheckHook).Hook(w.hooks.Hook("yes"), extension.DuringResponsibilityCheckHook)
		w.hooks.On("no", extension.DuringResponsibilityCheckHook, landscapertest.Returns(abort(0), nil))
		w.hooks.On("yes", extension.DuringResponsibilityCheckHook, landscapertest.Returns(goOn(), nil))
		w.run()
		w.succeeds("a")
	})

	It("several deployers on one manager process only their own items [L1]", func(ctx SpecContext) {
		w := e.begin(ctx)
		other := landscapertest.NewFake()
		second := w.args()
		named("second.deployerkit.dev")(&second)
		second.Type, second.Deployer = w.typ+"-second", other
		w.start(w.args(), second)
		w.succeeds("a")
		w.succeeds("b", func(di *lsv1alpha1.DeployItem) { di.Spec.Type = second.Type })
		Expect(w.calls("a")).To(Equal([]contract.Action{contract.ActionReconcile}))
		Expect(w.calls("b")).To(BeEmpty())
		Expect(other.Count(w.key("b"), contract.ActionReconcile)).To(Equal(1))
		Expect(w.get("b").Status.Deployer.Name).To(Equal("second.deployerkit.dev"))
	})
})

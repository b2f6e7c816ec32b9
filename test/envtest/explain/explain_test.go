// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	explaincommand "github.com/deployerkit/deployerkit/cmd/deployerkit/explain"
	treecommand "github.com/deployerkit/deployerkit/cmd/deployerkit/tree"
	"github.com/deployerkit/deployerkit/internal/explain"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// config returns a configuration of the manifest deployer with one ConfigMap.
func config(w *world.World, policy string) map[string]any {
	return map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
		"manifests": []any{map[string]any{"policy": policy, "manifest": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.Namespace, "name": "settings"}, "data": map[string]any{"a": "b"},
		}}},
	}
}

// run runs a command and returns its output.
func run(ctx context.Context, cmd *cobra.Command, args ...string) (string, error) {
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(GinkgoWriter)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// runExplain runs `explain` and decodes its JSON output.
func runExplain(ctx context.Context, args ...string) explain.Explanation {
	GinkgoHelper()
	out, err := run(ctx, explaincommand.NewCommand(), append(args, "-o", "json")...)
	Expect(err).NotTo(HaveOccurred())
	var e explain.Explanation
	Expect(json.Unmarshal([]byte(out), &e)).To(Succeed())
	return e
}

// listUnknownParts returns the names of the parts that the explanation lists as unknown.
func listUnknownParts(e explain.Explanation) (out []string) {
	for _, u := range e.Unknown {
		out = append(out, u.Part)
	}
	return out
}

// listSymptoms returns the symptoms in the advice.
func listSymptoms(e explain.Explanation) (out []string) {
	for _, a := range e.Advice {
		out = append(out, a.Symptom)
	}
	return out
}

var _ = Describe("deployerkit explain", func() {
	var w *world.World
	BeforeEach(func(ctx SpecContext) { w = world.New(ctx, GinkgoTB(), cp, world.Options{Name: "explain"}) })

	It("names the responsible deployers from their leases [V1] [V11]", func(ctx SpecContext) {
		w.Create(ctx, "web", config(w, "manage"))
		admin := fileOf(cp.Kubeconfig())
		e := runExplain(ctx, w.Namespace+"/web", "--kubeconfig", admin)
		Expect(e.Decision.Reason).To(Equal("NewJob"))
		Expect(e.Decision.Due).To(BeTrue())
		Expect(listSymptoms(e)).To(ContainElement(explain.SymptomNotPickedUp))
		Expect(listUnknownParts(e)).To(BeEmpty())

		start(ctx, w)
		w.Finished(ctx, "web")
		e = runExplain(ctx, "-n", w.Namespace, "web", "--kubeconfig", admin)
		Expect(e.Item.Phase).To(Equal("Succeeded"))
		Expect(e.Responsible.Registrations).To(HaveLen(1))
		Expect(e.Responsible.Registrations[0].Responsible).To(Equal("yes"))
		Expect(e.Responsible.Registrations[0].Working).To(BeTrue())
		Expect(e.Objects.Counts).To(Equal(map[string]int{"applied": 1}))
		Expect(listSymptoms(e)).To(Equal([]string{explain.SymptomNothingToDo}))
	})

	It("explains why a run failed [V1]", func(ctx SpecContext) {
		start(ctx, w)
		w.CreateAndRun(ctx, "web", config(w, "no-such-policy"))
		e := runExplain(ctx, w.Namespace+"/web", "--kubeconfig", fileOf(cp.Kubeconfig()))
		Expect(e.Item.Phase).To(Equal("Failed"))
		Expect(e.Outcome.LastError.Codes).To(ContainElement("ERR_CONFIGURATION_PROBLEM"))
		Expect(listSymptoms(e)).To(ContainElement(explain.SymptomFailed))
	})

	It("reports parts that the caller may not read as unknown [V1]", func(ctx SpecContext) {
		w.Create(ctx, "web", config(w, "manage"))
		dev := newUser(ctx, w, "dev", items)
		e := runExplain(ctx, "web", "--kubeconfig", dev.kubeconfig)
		Expect(e.Decision.Reason).To(Equal("NewJob"))
		Expect(listUnknownParts(e)).To(ConsistOf("target", "context", "leases", "events"))
		Expect(listSymptoms(e)).To(ContainElement(explain.SymptomPermissions))

		other := newUser(ctx, w, "other")
		_, err := run(ctx, explaincommand.NewCommand(), "web", "--kubeconfig", other.kubeconfig)
		Expect(err).To(MatchError(ContainSubstring("forbidden")))
	})

	It("reads the history over the secured port if the caller may get the item [V4] [V5]", func(ctx SpecContext) {
		address := start(ctx, w)
		w.CreateAndRun(ctx, "web", config(w, "manage"))
		dev := newUser(ctx, w, "dev", items)
		history := []string{"web", "--kubeconfig", dev.kubeconfig, "--history-address", address, "--history-insecure"}
		Eventually(func(g Gomega) {
			e := runExplain(ctx, history...)
			g.Expect(listUnknownParts(e)).NotTo(ContainElement("history"))
			g.Expect(e.History).NotTo(BeEmpty())
			g.Expect(e.History[0].Trigger).To(Equal("start"))
			// Collect the data of all reconciles that called the deployer. There may be several such reconciles,
			// because a conflict causes another reconcile.
			var results, phases, calls []string
			for _, r := range e.History {
				if r.Action != "reconcile" {
					continue
				}
				results = append(results, r.Result)
				for _, p := range r.Phases {
					phases = append(phases, p.Name)
				}
				for _, c := range r.Calls {
					calls = append(calls, c.Cluster+" "+c.Resource)
				}
			}
			g.Expect(results).To(ContainElement("done"))
			g.Expect(phases).To(ContainElements("fetch", "contract", "reconcile", "operate"))
			g.Expect(calls).To(ContainElements("target configmaps", "landscaper deployitems.landscaper.gardener.cloud/status"))
			// The poll interval is one second, because the handler limits the rate of requests.
		}).WithContext(ctx).WithTimeout(world.Patience).WithPolling(time.Second).Should(Succeed())

		By("refusing a user who may not get it")
		targetsOnly := rbacv1.PolicyRule{APIGroups: []string{"landscaper.gardener.cloud"}, Resources: []string{"deployitems"}, Verbs: []string{"get"}, ResourceNames: []string{"other"}}
		other := newUser(ctx, w, "other", targetsOnly)
		Expect(historyOf(ctx, address, other.config, w.Key("web"))).To(MatchError(ContainSubstring("Forbidden")))
		forged := *dev.config
		forged.BearerToken = "forged"
		Expect(historyOf(ctx, address, &forged, w.Key("web"))).To(MatchError(ContainSubstring("Unauthorized")))
	})

	It("shows the tree of an item, with the live state if the caller may read its Target [V8]", func(ctx SpecContext) {
		start(ctx, w)
		w.CreateAndRun(ctx, "web", config(w, "manage"))
		out, err := run(ctx, treecommand.NewCommand(), "web", "-n", w.Namespace, "--kubeconfig", fileOf(cp.Kubeconfig()), "--allow-private-hosts")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(MatchRegexp(`DeployItem web: Succeeded, .*\n└─ ConfigMap settings: Ready`))

		dev := newUser(ctx, w, "dev", items)
		out, err = run(ctx, treecommand.NewCommand(), "web", "--kubeconfig", dev.kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("ConfigMap settings: applied"))
		Expect(out).To(ContainSubstring("Unknown"))
		Expect(out).To(ContainSubstring("forbidden"))
	})
})

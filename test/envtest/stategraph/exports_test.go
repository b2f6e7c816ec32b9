// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph"
)

// readExports returns a function for Eventually that reads the exports of an item. The function returns nil if the item
// exports nothing.
func (w *env) readExports(ctx context.Context, name string) func(Gomega) map[string]any {
	return func(g Gomega) map[string]any {
		secret := &corev1.Secret{}
		err := w.Client.Get(ctx, w.Key(name+"-export"), secret)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		if err != nil {
			return nil
		}
		out := map[string]any{}
		g.Expect(json.Unmarshal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], &out)).To(Succeed())
		return out
	}
}

// wrapper is a deployer that embeds another deployer. Users write such deployers to override some methods.
type wrapper struct{ deployerlib.Deployer }

var _ = Describe("Exports of a graph", func() {
	graph := func() *stategraph.Graph {
		return build(stategraph.NewBuilder().
			Add("first", newConfigMap("first", stategraph.WithOutput("host", ".metadata.name"))).
			Add("late", newSignedConfigMap("late"), "first").
			AddExport("host", "first", "host").
			AddExport("value", "first", ".data.value").
			AddExport("address", "late", `{{ .NameOf "first" }}:{{ (.Output "late").data.value }}`))
	}

	It("exports are written as components become ready, follow changes, survive a restart and are deleted with the item [F34]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(graph())
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.readExports(ctx, "item")).WithTimeout(patience).Should(Equal(map[string]any{"host": "item-first", "value": "a"}))
		w.sign(ctx, "item-late", true)
		di := w.waitUntilSucceeded(ctx, "item")
		Expect(di.Status.ExportReference).To(HaveField("Name", "item-export"))
		Expect(w.readExports(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]any{"host": "item-first", "value": "a", "address": "item-first:a"}))

		By("changing the item after a restart")
		w.Manager.Stop()
		w.start(graph())
		w.Update(ctx, "item", newConfig(settings{Value: "b"}))
		w.waitUntilSucceeded(ctx, "item")
		Expect(w.readExports(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]any{"host": "item-first", "value": "b", "address": "item-first:b"}))

		By("deleting the item")
		w.Delete(ctx, "item")
		Eventually(w.readExports(ctx, "item")).WithTimeout(patience).Should(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("the next job restores exports that another client has changed or deleted [F74]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start(graph())
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.readExports(ctx, "item")).WithTimeout(patience).ShouldNot(BeNil())
		w.sign(ctx, "item-late", true)
		w.waitUntilSucceeded(ctx, "item")
		w.VerifyExportRestored(ctx, "item", w.rerunSuccessfully)
	}, SpecTimeout(5*time.Minute))

	It("exports are written also if another deployer wraps the deployer of the graph [F34]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.args = func(args *deployerlib.DeployerArgs) { args.Deployer = &wrapper{Deployer: args.Deployer} }
		w.start(build(stategraph.NewBuilder().Add("first", newConfigMap("first")).AddExport("value", "first", ".data.value")))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		Expect(w.readExports(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]any{"value": "a"}))
	}, SpecTimeout(5*time.Minute))

	It("a job waits for an exported field that does not exist yet [F34]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.start(build(stategraph.NewBuilder().Add("first", newConfigMap("first")).AddExport("signed", "first", ".metadata.annotations.signed")))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Phase", phases.Progressing))
		w.sign(ctx, "item-first", true)
		w.waitUntilSucceeded(ctx, "item")
		Expect(w.readExports(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]any{"signed": "true"}))
	}, SpecTimeout(5*time.Minute))
})

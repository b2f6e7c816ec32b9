// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
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

// wrappingDeployer is a deployer that wraps another deployer and hides its optional interfaces.
type wrappingDeployer struct{ deployerlib.Deployer }

var _ = Describe("Exports of a handler", func() {
	It("exports are written when the handler no longer waits, follow its responses, and are deleted with the item [F34]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		var host atomic.Pointer[string]
		wait := "first"
		host.Store(&wait)
		handler := declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			b := declarative.NewBuilder(nil)
			switch value := *host.Load(); value {
			case "first":
				return b.AddExport("host", value).Wait("a peer").ResyncAfter(100 * time.Millisecond).Build()
			case "":
				response, err := b.Build()
				response.Exports = map[string]any{}
				return response, err
			default:
				return b.AddExport("host", value).AddExport("port", 5432).Build()
			}
		})
		w.start(handler)
		w.Create(ctx, "item", config(nil))
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Progressing))
		Expect(w.readExports(ctx, "item")(NewGomega(Fail))).To(BeNil())
		for _, value := range []string{"a", "b"} {
			host.Store(&value)
			w.RunAgain(ctx, "item")
			Expect(w.readExports(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]any{"host": value, "port": float64(5432)}))
		}
		none := ""
		host.Store(&none)
		w.RunAgain(ctx, "item")
		Expect(w.readExports(ctx, "item")(NewGomega(Fail))).To(BeNil())
		last := "c"
		host.Store(&last)
		w.RunAgain(ctx, "item")
		w.Delete(ctx, "item")
		Eventually(w.readExports(ctx, "item")).WithTimeout(patience).Should(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("the next job restores exports that another client has changed or deleted [F74]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.start(declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			return declarative.NewBuilder(nil).AddExport("host", "a").Build()
		}))
		w.CreateAndRun(ctx, "item", config(nil))
		w.VerifyExportRestored(ctx, "item", w.RunAgain)
	}, SpecTimeout(5*time.Minute))

	It("exports are written also if another deployer wraps the deployer of the handler [F34]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		args := declarative.Args("declarative.test.deployerkit.dev", w.Type, declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			return declarative.NewBuilder(nil).AddExport("host", "a").Build()
		}), w.options)
		args.Deployer = &wrappingDeployer{Deployer: args.Deployer}
		w.Start(args)
		w.CreateAndRun(ctx, "item", config(nil))
		Expect(w.readExports(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]any{"host": "a"}))
	}, SpecTimeout(5*time.Minute))
})

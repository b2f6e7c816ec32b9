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

// exports returns a function for Eventually that reads the exports of an item. The function returns nil if the item
// exports nothing.
func (w *env) exports(ctx context.Context, name string) func(Gomega) map[string]any {
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

// outer is a deployer that wraps another deployer and hides its optional interfaces.
type outer struct{ deployerlib.Deployer }

var _ = Describe("Exports of a handler", func() {
	It("exports are written when the handler no longer waits, follow its responses, and are deleted with the item [F34]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		var host atomic.Pointer[string]
		wait := "first"
		host.Store(&wait)
		handler := declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			b := declarative.Respond(nil)
			switch value := *host.Load(); value {
			case "first":
				return b.Export("host", value).Wait("somebody").Resync(100 * time.Millisecond).Response()
			case "":
				response, err := b.Response()
				response.Exports = map[string]any{}
				return response, err
			default:
				return b.Export("host", value).Export("port", 5432).Response()
			}
		})
		w.start(handler)
		w.Create(ctx, "item", config(nil))
		Eventually(w.Stored(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Progressing))
		Expect(w.exports(ctx, "item")(NewGomega(Fail))).To(BeNil())
		for _, value := range []string{"a", "b"} {
			host.Store(&value)
			w.Again(ctx, "item")
			Expect(w.exports(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]any{"host": value, "port": float64(5432)}))
		}
		none := ""
		host.Store(&none)
		w.Again(ctx, "item")
		Expect(w.exports(ctx, "item")(NewGomega(Fail))).To(BeNil())
		last := "c"
		host.Store(&last)
		w.Again(ctx, "item")
		w.Delete(ctx, "item")
		Eventually(w.exports(ctx, "item")).WithTimeout(patience).Should(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("the next job restores exports that another client has changed or deleted [F74]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.start(declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			return declarative.Respond(nil).Export("host", "a").Response()
		}))
		w.Deploy(ctx, "item", config(nil))
		w.BreakExport(ctx, "item", w.Again)
	}, SpecTimeout(5*time.Minute))

	It("exports are written also if another deployer wraps the deployer of the handler [F34]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		args := declarative.Args("declarative.test.deployerkit.dev", w.Type, declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			return declarative.Respond(nil).Export("host", "a").Response()
		}), w.options)
		args.Deployer = &outer{Deployer: args.Deployer}
		w.Start(args)
		w.Deploy(ctx, "item", config(nil))
		Expect(w.exports(ctx, "item")(NewGomega(Fail))).To(Equal(map[string]any{"host": "a"}))
	}, SpecTimeout(5*time.Minute))
})

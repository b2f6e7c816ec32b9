// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var phases = lsv1alpha1.DeployItemPhases

// patience is the time limit of all waits. It is long, because the machine may be slow.
const patience = world.Patience

// env is the environment of a spec: a world.World with its own declarative deployer. The objects that the deployer
// creates are in the namespace of the world.
type env struct {
	*world.World
	options declarative.Options
	workers int // 0 means the default number
}

func newEnv(ctx context.Context, kinds ...declarative.ChildKind) *env {
	GinkgoHelper()
	w := &env{World: world.New(ctx, GinkgoTB(), cp, world.Options{Name: "declarative", Landscaper: landscapertest.LandscaperOptions{ManagedBy: "exec"}})}
	w.options = declarative.Options{
		Children: kinds, MinInterval: 100 * time.Millisecond,
		Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport,
	}
	return w
}

// start runs a deployer with the given handler until the spec ends or the manager is stopped.
func (w *env) start(handler declarative.Handler, hooks ...extension.ReconcileExtensionHookSetup) *env {
	GinkgoHelper()
	args := declarative.Args("echo.deployer.example.com", w.Type, handler, w.options, hooks...)
	args.Backoff.Max = time.Second
	args.Options.MaxConcurrentReconciles = w.workers
	w.Start(args)
	return w
}

// status returns a function for Eventually. This function reads the status of an item that the handler returned.
func (w *env) status(ctx context.Context, name string) func(Gomega) map[string]any {
	return func(g Gomega) map[string]any {
		di := w.ReadItem(ctx, name)(g)
		out := map[string]any{}
		if di.Status.ProviderStatus != nil {
			g.Expect(json.Unmarshal(di.Status.ProviderStatus.Raw, &out)).To(Succeed())
		}
		return out
	}
}

// listEvents returns a function for Eventually that reads the texts of all events with the given reason.
func (w *env) listEvents(ctx context.Context, reason string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &eventsv1.EventList{}
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		notes := []string{}
		for i := range list.Items {
			if list.Items[i].Reason == reason {
				notes = append(notes, list.Items[i].Type+" "+list.Items[i].Regarding.Name+": "+list.Items[i].Note)
			}
		}
		return notes
	}
}

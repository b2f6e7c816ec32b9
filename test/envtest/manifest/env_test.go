// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"maps"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var phases = lsv1alpha1.DeployItemPhases

// patience is the time limit of all waits. It is long, because the machine may be slow.
const patience = world.Patience

// env is the environment of a spec: a world.World with its own manifest deployer. The deployed objects are in the
// namespace of the world.
type env struct {
	*world.World
	options manifest.Options
	workers int // 0 means the default number
}

func newEnv(ctx context.Context, revision contract.Revision) *env {
	GinkgoHelper()
	w := &env{World: world.New(ctx, GinkgoTB(), cp, world.Options{Name: "manifest", Landscaper: landscapertest.LandscaperOptions{Revision: revision}})}
	w.options = manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport}
	return w
}

// start runs the deployer until the spec ends or the manager is stopped.
func (w *env) start() *env {
	GinkgoHelper()
	args := manifest.Args(nil, w.options)
	args.Options.MaxConcurrentReconciles = w.workers
	w.Start(args)
	return w
}

// config returns a configuration with the given manifests and the further fields in more.
func config(more map[string]any, manifests ...any) map[string]any {
	entries := []any{}
	for _, m := range manifests {
		if entry, ok := m.(entry); ok {
			entries = append(entries, map[string]any(entry))
			continue
		}
		entries = append(entries, map[string]any{"manifest": m})
	}
	out := map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": entries,
	}
	maps.Copy(out, more)
	return out
}

// entry is an element of the list `manifests` in a configuration: a manifest with its policy and other fields.
type entry map[string]any

// configMap returns an entry for a ConfigMap.
func (w *env) configMap(name string, data map[string]string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": w.Namespace, "name": name}, "data": data}
}

// configMaps returns entries for n ConfigMaps.
func (w *env) configMaps(n int, value string) []any {
	out := []any{}
	for i := range n {
		out = append(out, w.configMap(fmt.Sprintf("cm-%d", i), map[string]string{"key": value}))
	}
	return out
}

var _ deployerlib.Deployer = manifest.New(manifest.Options{})

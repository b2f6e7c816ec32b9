// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

// subject describes a deployer. It also describes the objects that the item of this deployer deploys for a value.
type subject struct {
	name     string
	revision contract.Revision
	// args returns the arguments of the deployer. The deployer uses the given connection to the registry.
	args func(line) deployerlib.DeployerArgs
	// config returns a configuration with a value. If slow is true, a job with this configuration does not end by
	// itself.
	config func(ns, value string, slow bool) map[string]any
	// objects returns the names of the ConfigMaps. If objects is nil, the deployer deploys nothing to a target, and
	// there is no drift.
	objects func(value string) []string
	// login is true if the item has a Secret with a password that never changes. exports is true if the item exports
	// the value. account is true if the item has an account in the registry.
	login, exports, account bool
}

// These are the successive values of the item. The item has one additional object while its value is `first` or
// `interrupted`.
const (
	first       = "first"
	second      = "second"
	interrupted = "interrupted"
	last        = "last"
)

// itemName is the name of the item.
const itemName = "item"

// objectNames returns the names of the ConfigMaps of an item for a value.
func objectNames(value string) []string {
	switch value {
	case first:
		return []string{"item-main", "item-old", "item-side"}
	case interrupted:
		return []string{"item-extra", "item-main", "item-side"}
	}
	return []string{"item-main", "item-side"}
}

func newSubjects() []*subject {
	return []*subject{
		{name: "mock", revision: contract.RevisionJobID, args: newMockArgs, config: newMockConfig, exports: true},
		{name: "mock, annotations", revision: contract.RevisionAnnotation, args: newMockArgs, config: newMockConfig, exports: true},
		{name: "manifest", revision: contract.RevisionJobID, args: manifestArgs, config: manifestConfig, objects: objectNames, exports: true},
		{name: "declarative", revision: contract.RevisionJobID, args: newDeclarativeArgs, config: newConfig, objects: objectNames, login: true, account: true},
		{name: "stategraph", revision: contract.RevisionJobID, args: newStateGraphArgs, config: newConfig, objects: func(string) []string {
			return []string{"item-main", "item-settings", "item-side"}
		}, account: true},
	}
}

// allowed is a policy that accepts targets on this machine.
var allowed = targets.Policy{AllowPrivateHosts: true}

func newMockArgs(line) deployerlib.DeployerArgs { return mock.Args(nil) }

func newMockConfig(_, value string, slow bool) map[string]any {
	out := map[string]any{
		"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
		"export": map[string]any{"value": value},
	}
	if slow {
		out["phase"] = "Progressing"
	}
	return out
}

func manifestArgs(l line) deployerlib.DeployerArgs {
	return manifest.Args(nil, manifest.Options{Targets: allowed, WrapTransport: l.network.Transport})
}

// manifestConfig returns a configuration of the manifest deployer. If slow is true, the item waits for a field that is
// never set.
func manifestConfig(ns, value string, slow bool) map[string]any {
	manifests := []any{}
	for _, name := range objectNames(value) {
		manifests = append(manifests, map[string]any{"manifest": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": ns, "name": name},
			"data": map[string]any{"value": value},
		}})
	}
	main := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "item-main", "namespace": ns}
	out := map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": manifests,
		"exports": map[string]any{"exports": []any{map[string]any{"key": "value", "jsonPath": ".data.value", "fromResource": main}}},
	}
	if slow {
		out["readinessChecks"] = map[string]any{"custom": []any{map[string]any{
			"name": "told", "resourceSelector": []any{main},
			"requirements": []any{map[string]any{"jsonPath": ".data.ready", "operator": "==", "values": []any{map[string]any{"value": "true"}}}},
		}}}
	}
	return out
}

// settings is the Go type of spec.config for the declarative deployer and for the state graph.
type settings struct {
	Value string `json:"value"`
	Slow  bool   `json:"slow,omitempty"`
}

func newConfig(_, value string, slow bool) map[string]any {
	return map[string]any{"apiVersion": "systematic.test.deployerkit.dev/v1", "kind": "Config", "value": value, "slow": slow}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}
}

// handler is the handler of the declarative deployer.
type handler struct{ line }

var _ declarative.Finalizer = handler{}

func newDeclarativeArgs(l line) deployerlib.DeployerArgs {
	return declarative.Args("systematic.test.deployerkit.dev", "systematic.test.deployerkit.dev/declarative", handler{l}, declarative.Options{
		Children:    []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "v1", Kind: "Secret"}},
		MinInterval: 50 * time.Millisecond, Targets: allowed, WrapTransport: l.network.Transport,
	})
}

// Sync returns ConfigMaps and a Secret with a password that is generated once, and creates an account.
func (h handler) Sync(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	config, err := declarative.Config[settings](req)
	if err != nil {
		return nil, err
	}
	if err := h.ensure(req.Item.Name, config.Value); err != nil {
		return nil, err
	}
	response := declarative.NewBuilder(map[string]any{"value": config.Value})
	for _, name := range objectNames(config.Value) {
		response.Add(configMap(name, config.Value))
	}
	known, _, err := declarative.Find[corev1.Secret](req.Children, "Secret", "item-login")
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "item-login"}, Data: map[string][]byte{}}
	secret.Data["value"], err = declarative.ValueOr(known.Data["value"], func() ([]byte, error) { return []byte(rand.Text()), nil })
	if config.Slow {
		response.Wait("it is told to be slow")
	}
	return response.Try(secret, err).Build()
}

// Finalize removes the account.
func (h handler) Finalize(_ context.Context, req *declarative.SyncRequest) (*declarative.FinalizeResponse, error) {
	return nil, h.remove(req.Item.Name)
}

func newStateGraphArgs(l line) deployerlib.DeployerArgs {
	graph, err := stategraph.NewBuilder().
		Add("account", stategraph.External(stategraph.ExternalSpec{
			Reconcile: func(ctx context.Context) error {
				return withSettings(ctx, func(s *settings) error { return l.ensure(itemName, s.Value) })
			},
			Delete: func(context.Context) error { return l.remove(itemName) },
		})).
		Add("settings", stategraph.Versioned(newConfigMapFunc("item-settings-"))).
		Add("main", stategraph.Object(newConfigMapFunc("item-main"), stategraph.ReadyWhen(checkReady)), "account", "settings").
		Add("side", stategraph.Object(newConfigMapFunc("item-side")), "settings").
		Build()
	if err != nil {
		panic(fmt.Sprintf("the graph of the test: %v", err))
	}
	args := stategraph.Args("systematic.test.deployerkit.dev", "systematic.test.deployerkit.dev/stategraph", graph, stategraph.Options{
		StartWithin: -1, Targets: allowed, WrapTransport: l.network.Transport,
	})
	return args
}

// withSettings decodes the configuration of the item of the current run, and calls the function `use` with the result.
func withSettings(ctx context.Context, use func(*settings) error) error {
	s, err := stategraph.Config[settings](ctx)
	if err != nil {
		return err
	}
	return use(s)
}

// newConfigMapFunc returns the body of a component. It creates a ConfigMap with the value of the item. If `name` ends
// with a dash, the library generates the rest of the name.
func newConfigMapFunc(name string) func(context.Context) (*corev1.ConfigMap, error) {
	return func(ctx context.Context) (cm *corev1.ConfigMap, err error) {
		item, err := stategraph.Item(ctx)
		if err != nil {
			return nil, err
		}
		err = withSettings(ctx, func(s *settings) error {
			cm = configMap(name, s.Value)
			if name[len(name)-1] == '-' {
				cm.Name, cm.GenerateName = "", name
			}
			cm.Namespace = item.Namespace
			return nil
		})
		return cm, err
	}
}

// checkReady reports the ConfigMap as ready unless it contains the value of the job that the scenario
// interrupts. Therefore, this job does not end by itself.
func checkReady(cm *corev1.ConfigMap) (stategraph.Readiness, error) {
	return stategraph.ReadyIf(cm.Data["value"] != interrupted, "it is told to be slow"), nil
}

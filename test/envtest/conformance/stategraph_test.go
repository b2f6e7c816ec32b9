// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

// site is a graph in the style of docs/stategraph.md. It contains an account in another system, settings, and a page
// that requires both.
type site struct {
	Account  stategraph.Resource
	Settings stategraph.Resource
	Page     stategraph.Resource `graph:"requires=account;settings"`
}

type siteConfig struct {
	Mode string `json:"mode"` // if the mode is "asking", the settings are ready when they contain an answer
}

// newSiteGraph builds the graph of the site.
func newSiteGraph() (*stategraph.Graph, error) {
	return stategraph.FromStruct(site{
		Account:  stategraph.External(stategraph.ExternalSpec{Reconcile: openAccount, Delete: closeAccount}),
		Settings: stategraph.Object(newSettings, stategraph.ReadyWhen(checkAnswered)),
		Page:     stategraph.Object(newPage),
	})
}

// getAccount returns the account of an item. The account is stored in a Secret. Only the functions of this component
// know that.
func getAccount(ctx context.Context) (client.Client, *corev1.Secret, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := stategraph.Client(ctx)
	return c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name + "-account"}}, err
}

func openAccount(ctx context.Context) error {
	c, account, err := getAccount(ctx)
	if err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(account), account); client.IgnoreNotFound(err) != nil || err == nil {
		return err
	}
	return c.Create(ctx, account)
}

func closeAccount(ctx context.Context) error {
	c, account, err := getAccount(ctx)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(c.Delete(ctx, account))
}

func newSettings(ctx context.Context) (*corev1.ConfigMap, error) {
	config, err := stategraph.Config[siteConfig](ctx)
	if err != nil {
		return nil, err
	}
	if config.Mode != "" && config.Mode != "asking" {
		return nil, deployerlib.NewConfigError("spec.config.mode", "want asking or nothing, is %q", config.Mode)
	}
	cm, err := mapOf(ctx, "")
	if err == nil {
		cm.Data = map[string]string{"mode": config.Mode}
	}
	return cm, err
}

// checkAnswered returns the readiness of the settings: settings with the mode "asking" are ready when they contain an
// answer.
func checkAnswered(cm *corev1.ConfigMap) (stategraph.Readiness, error) {
	return stategraph.ReadyIf(cm.Data["mode"] != "asking" || cm.Data["ready"] == "true", "the ConfigMap does not say yet that it is ready"), nil
}

func newPage(ctx context.Context) (*corev1.ConfigMap, error) { return mapOf(ctx, "-page") }

// mapOf returns a ConfigMap whose name consists of the name of the item and a suffix.
func mapOf(ctx context.Context, suffix string) (*corev1.ConfigMap, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name + suffix}}, nil
}

// newStateGraphSubject returns the conformance subject for a deployer that uses package stategraph.
func newStateGraphSubject() conformance.Subject {
	const kind = "conformance.deployerkit.dev/site"
	making := func(mode string) any {
		return map[string]any{"apiVersion": "conformance.deployerkit.dev/v1", "kind": "Site", "mode": mode}
	}
	return conformance.Subject{
		Name: "stategraph", Type: kind,
		Start: func(ctx context.Context, cfg *rest.Config) error {
			graph, err := newSiteGraph()
			if err != nil {
				return err
			}
			return conformance.NewStartFunc(func() deployerlib.DeployerArgs {
				args := stategraph.Args("site-deployer", kind, graph, stategraph.Options{Targets: targets.Policy{AllowPrivateHosts: true}})
				args.TargetSelectors = newSelectors()
				return args
			})(ctx, cfg)
		},
		Target: newTargetSpec, TargetLabels: ourTargets, OtherTargetLabels: otherTargets,
		Valid:   func(types.NamespacedName) any { return making("") },
		Invalid: func(_ types.NamespacedName, note string) any { return making(note) },
		Slow:    func(types.NamespacedName) any { return making("asking") },
		Finish:  setReady,
		Deployed: func(ctx context.Context, c client.Client, key types.NamespacedName) (bool, error) {
			page, err := hasObject(ctx, c, &corev1.ConfigMap{}, key.Namespace, key.Name+"-page")
			if err != nil || page {
				return page, err
			}
			return hasObject(ctx, c, &corev1.Secret{}, key.Namespace, key.Name+"-account")
		},
		Exceptions: []conformance.Exception{{
			Check: "restart-rests", Revision: contract.RevisionAnnotation,
			Reason: "each item is looked at once within five minutes of a start, and without job IDs that is a run with its phases (docs/stategraph.md)",
		}},
		Options: conformance.Options{SideBySide: true},
		Bounds:  conformance.Bounds{Finish: time.Minute, Timeout: 4 * time.Second},
	}
}

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

// site is a graph as docs/stategraph.md teaches it: an account somewhere else, settings, and a page that needs both.
type site struct {
	Account  stategraph.Resource
	Settings stategraph.Resource
	Page     stategraph.Resource `graph:"requires=account;settings"`
}

type siteConfig struct {
	Mode string `json:"mode"` // "asking": the settings are ready when they say so
}

// siteGraph builds the graph.
func siteGraph() (*stategraph.Graph, error) {
	return stategraph.FromStruct(site{
		Account:  stategraph.External(stategraph.ExternalSpec{Reconcile: openAccount, Delete: closeAccount}),
		Settings: stategraph.Object(settings, stategraph.ReadyWhen(answered)),
		Page:     stategraph.Object(page),
	})
}

// accountOf returns the account of an item. Only the functions of the component know that it is a Secret.
func accountOf(ctx context.Context) (client.Client, *corev1.Secret, error) {
	node, err := stategraph.From(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := node.Client()
	return c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: node.Item().Namespace, Name: node.Item().Name + "-account"}}, err
}

func openAccount(ctx context.Context) error {
	c, account, err := accountOf(ctx)
	if err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(account), account); client.IgnoreNotFound(err) != nil || err == nil {
		return err
	}
	return c.Create(ctx, account)
}

func closeAccount(ctx context.Context) error {
	c, account, err := accountOf(ctx)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(c.Delete(ctx, account))
}

func settings(ctx context.Context) (*corev1.ConfigMap, error) {
	config, err := stategraph.Config[siteConfig](ctx)
	if err != nil {
		return nil, err
	}
	if config.Mode != "" && config.Mode != "asking" {
		return nil, deployerlib.ConfigError("spec.config.mode", "want asking or nothing, is %q", config.Mode)
	}
	cm, err := mapOf(ctx, "")
	if err == nil {
		cm.Data = map[string]string{"mode": config.Mode}
	}
	return cm, err
}

// answered reports whether settings that ask have their answer.
func answered(cm *corev1.ConfigMap) (stategraph.Readiness, error) {
	return stategraph.ReadyIf(cm.Data["mode"] != "asking" || cm.Data["ready"] == "true", "nobody has said yet that it is ready"), nil
}

func page(ctx context.Context) (*corev1.ConfigMap, error) { return mapOf(ctx, "-page") }

// mapOf is a ConfigMap named like the item.
func mapOf(ctx context.Context, suffix string) (*corev1.ConfigMap, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name + suffix}}, nil
}

// stategraphDeployer is a deployer written with package stategraph as a subject.
func stategraphDeployer() conformance.Subject {
	const kind = "conformance.deployerkit.dev/site"
	making := func(mode string) any {
		return map[string]any{"apiVersion": "conformance.deployerkit.dev/v1", "kind": "Site", "mode": mode}
	}
	return conformance.Subject{
		Name: "stategraph", Type: kind,
		Start: func(ctx context.Context, cfg *rest.Config) error {
			graph, err := siteGraph()
			if err != nil {
				return err
			}
			return conformance.Library(func() deployerlib.DeployerArgs {
				args := stategraph.Args("site-deployer", kind, graph, stategraph.Options{Targets: targets.Policy{AllowPrivateHosts: true}})
				args.TargetSelectors = selectors()
				return args
			})(ctx, cfg)
		},
		Target: clusterTarget, TargetLabels: ourTargets, OtherTargetLabels: otherTargets,
		Valid:   func(types.NamespacedName) any { return making("") },
		Invalid: func(_ types.NamespacedName, note string) any { return making(note) },
		Slow:    func(types.NamespacedName) any { return making("asking") },
		Finish:  sayReady,
		Deployed: func(ctx context.Context, c client.Client, key types.NamespacedName) (bool, error) {
			page, err := stands(ctx, c, &corev1.ConfigMap{}, key.Namespace, key.Name+"-page")
			if err != nil || page {
				return page, err
			}
			return stands(ctx, c, &corev1.Secret{}, key.Namespace, key.Name+"-account")
		},
		Exceptions: []conformance.Exception{{
			Check: "restart-rests", Revision: contract.RevisionAnnotation,
			Reason: "each item is looked at once within five minutes of a start, and without job IDs that is a run with its phases (docs/stategraph.md)",
		}},
		Options: conformance.Options{SideBySide: true},
		Bounds:  conformance.Bounds{Finish: time.Minute, Timeout: 4 * time.Second},
	}
}

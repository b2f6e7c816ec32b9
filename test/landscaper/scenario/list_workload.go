// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/internal/steps"
)

// listWorkloadScenarios returns the scenarios in which an item waits for a controller of the target.
func listWorkloadScenarios() []Scenario {
	var scenarios []Scenario
	for _, strategy := range []string{"update", "patch", "merge", "mergeOverwrite"} {
		scenarios = append(scenarios, Scenario{
			Name: "an item waits until its Deployment is ready, with the strategy " + strategy, Waits: true,
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newWorkload(newDeployment(2, "slow"), withStrategy(strategy))), storeUID("Deployment", "app"),
				install("it", newWorkload(newDeployment(1), withStrategy(strategy))), requireSame("Deployment", "app"),
				deleteAndWait("it"), expectNoObject("Deployment", "app"),
			},
		}, Scenario{
			Name: "an item exports a token of a controller, with the strategy " + strategy, Waits: true,
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newTokenExporter(strategy)), expectToken("token"), reconcile("it"), expectToken("token"),
				deleteAndWait("it"), expectNoObject("Secret", "token"),
			},
		})
	}
	available := withConfig("readinessChecks", object{"disableDefault": true, "custom": []object{{
		"name":             "available",
		"resourceSelector": []object{{"apiVersion": "apps/v1", "kind": "Deployment", "name": "app", "namespace": namespacePlaceholder}},
		"requirements":     []object{{"jsonPath": ".status.availableReplicas", "operator": "==", "values": []object{{"value": 1}}}},
	}}})
	return append(scenarios, Scenario{
		Name: "a custom readiness check waits for a controller", Waits: true,
		Steps: []steps.Step{createTarget("cluster"), install("it", newWorkload(newDeployment(1, "slow"), available)), deleteAndWait("it")},
	})
}

// newTokenExporter returns a blueprint that exports the token of a ServiceAccount. A controller writes the token to a
// Secret.
func newTokenExporter(strategy string) blueprint {
	b := newBlueprint(newManifestItem("account", newTokenSecret("account", "token"),
		withStrategy(strategy), withExport("token", ".data.token", "Secret", "token")))
	b.exports, b.exportTemplate = []string{"token"}, `exports: {token: {{ .deployitems.account.token | b64dec }}}`
	return b
}

// expectToken waits until a DataObject contains the same token as the Secret of the same name.
func expectToken(name string) steps.Step {
	return steps.Expect("the token is exported", func(ctx context.Context, e *steps.Env) error {
		secret := &corev1.Secret{}
		if err := e.Get(ctx, e.Key(name), secret); err != nil {
			return err
		}
		token := secret.Data[corev1.ServiceAccountTokenKey]
		if len(token) == 0 {
			return errors.New("the Secret contains no token")
		}
		return steps.DataObjectHas(name, string(mustMarshal(string(token))))(ctx, e)
	})
}

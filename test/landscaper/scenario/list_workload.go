// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/base64"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func workloadScenarios() []Scenario {
	var out []Scenario
	for _, s := range []string{"update", "patch", "merge", "mergeOverwrite"} {
		out = append(out, Scenario{
			Name: "a Deployment becomes ready, strategy " + s, Waits: true,
			Steps: []Step{
				clusterTarget("cluster"),
				installed("it", app([]object{deployment(2, "slow")}, strategy(s))), finishes("it", succeeded), remembered("apps/v1", "Deployment", "app"),
				installed("it", app([]object{deployment(1)}, strategy(s))), finishes("it", succeeded), same("apps/v1", "Deployment", "app"),
				uninstalled("it"), absent("apps/v1", "Deployment", "app"),
			},
		}, Scenario{
			Name: "a token is exported, strategy " + s, Waits: true,
			Steps: []Step{
				clusterTarget("cluster"), installed("it", tokenExport(s)), finishes("it", succeeded), hasToken("token"),
				operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded), hasToken("token"),
				uninstalled("it"), absent("v1", "Secret", "token"),
			},
		})
	}
	return append(out, Scenario{
		Name: "a custom readiness check waits for a controller", Waits: true,
		Steps: []Step{
			clusterTarget("cluster"),
			installed("it", app([]object{deployment(1, "slow")}, config("readinessChecks", object{"disableDefault": true, "custom": []object{{
				"name":             "available",
				"resourceSelector": []object{{"apiVersion": "apps/v1", "kind": "Deployment", "name": "app", "namespace": here}},
				"requirements":     []object{{"jsonPath": ".status.availableReplicas", "operator": "==", "values": []object{{"value": 1}}}},
			}}}))),
			finishes("it", succeeded), uninstalled("it"),
		},
	})
}

// tokenExport returns a blueprint that exports the token of a ServiceAccount. A controller writes the token to a
// Secret.
func tokenExport(s string) blueprint {
	return blueprint{
		imports: importsTarget("cluster"),
		items: []object{manifests("account", tokenSecret("account", "token"), strategy(s), config("exports", object{"exports": []object{{
			"key": "token", "jsonPath": ".data.token",
			"fromResource": object{"apiVersion": "v1", "kind": "Secret", "name": "token", "namespace": here},
		}}}))},
		exports: []string{"token"}, exportOf: `exports: {token: {{ .deployitems.account.token | b64dec }}}`,
	}
}

// hasToken requires that a DataObject contains the same token as the Secret of the same name.
func hasToken(name string) Step {
	return func(ctx context.Context, e *Env) error {
		return e.await(ctx, "the token is exported", func(ctx context.Context) error {
			d := &lsv1alpha1.DataObject{}
			if err := e.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, d); err != nil {
				return err
			}
			secret := e.ref("v1", "Secret", name)
			if err := e.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
				return err
			}
			data, _ := secret.Object["data"].(object)
			encoded, _ := data["token"].(string)
			token, err := base64.StdEncoding.DecodeString(encoded)
			switch {
			case err != nil:
				return err
			case len(token) == 0:
				return errEmpty
			case string(d.Data.RawMessage) != string(rawJSON(string(token))):
				return fmt.Errorf("the DataObject has another token")
			}
			return nil
		})
	}
}

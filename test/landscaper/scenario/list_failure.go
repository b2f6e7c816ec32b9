// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// orphanType is a type of deploy items for which no deployer is responsible.
const orphanType = "example.org/none"

func failureScenarios() []Scenario {
	broken := app([]object{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "app", "namespace": here}, "data": "no map"}}, timeout("8s"))
	return []Scenario{
		{
			Name: "an invalid configuration fails and is repaired",
			Steps: []Step{
				clusterTarget("cluster"),
				installed("it", app([]object{cm("app", "a", "1")}, config("manifests", "no list"))), finishes("it", failed),
				installed("it", app([]object{cm("app", "a", "1")})), finishes("it", succeeded), has("app", "a", "1"),
				uninstalled("it"),
			},
		},
		{
			Name: "a manifest that the server refuses fails and is repaired",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", broken), finishes("it", failed),
				installed("it", app([]object{cm("app", "a", "1")})), finishes("it", succeeded), has("app", "a", "1"),
				uninstalled("it"),
			},
		},
		{
			Name: "a failing item stops those that depend on it", Waits: true,
			Steps: []Step{
				clusterTarget("cluster"),
				installed("it", blueprint{imports: importsTarget("cluster"), items: []object{
					mock("bad", config("phase", "Failed")), manifests("after", []object{cm("after")}, dependsOn("bad")),
				}}),
				finishes("it", failed), absent("v1", "ConfigMap", "after"),
				installed("it", blueprint{imports: importsTarget("cluster"), items: []object{
					mock("bad", config("phase", "Succeeded")), manifests("after", []object{cm("after")}, dependsOn("bad")),
				}}),
				finishes("it", succeeded), exists("v1", "ConfigMap", "after"), uninstalled("it"),
			},
		},
		{
			Name: "spec.timeout ends an item that waits", Waits: true,
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{deployment(1, "unready")}, timeout("6s"))), finishes("it", failed),
				item("app", "has ERR_TIMEOUT", hasCode(lsv1alpha1.ErrorTimeout)),
				installed("it", app([]object{deployment(0)}, timeout("60s"))), finishes("it", succeeded),
				uninstalled("it"), absent("apps/v1", "Deployment", "app"),
			},
		},
		{
			Name: "an item without a deployer is not picked up",
			Steps: []Step{
				installed("it", blueprint{items: []object{{"name": "none", "type": orphanType, "config": object{"apiVersion": "x/v1", "kind": "X"}}}}),
				finishes("it", failed),
				item("none", "has PickupTimeout", func(di *lsv1alpha1.DeployItem) bool {
					return di.Status.LastError != nil && di.Status.LastError.Reason == lsv1alpha1.PickupTimeoutReason
				}),
			},
		},
		{
			Name: "an interrupt ends a job that waits", Waits: true,
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{deployment(1, "unready")})),
				phase("app", lsv1alpha1.DeployItemPhases.Progressing), exists("apps/v1", "Deployment", "app"),
				operated("it", lsv1alpha1.InterruptOperation), finishes("it", failed),
				installed("it", app([]object{deployment(0)})), finishes("it", succeeded),
				uninstalled("it"), absent("apps/v1", "Deployment", "app"),
			},
		},
	}
}

// hasCode returns a function that reports whether the last error of an item contains a code.
func hasCode(code lsv1alpha1.ErrorCode) func(di *lsv1alpha1.DeployItem) bool {
	return func(di *lsv1alpha1.DeployItem) bool {
		return di.Status.LastError != nil && slices.Contains(di.Status.LastError.Codes, code)
	}
}

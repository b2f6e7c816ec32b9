// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/internal/steps"
)

// The phases of an Installation whose job has failed.
const (
	failed       = lsv1alpha1.InstallationPhase(lsv1alpha1.PhaseStringFailed)
	deleteFailed = lsv1alpha1.InstallationPhase(lsv1alpha1.PhaseStringDeleteFailed)
)

// listRepairScenarios returns the scenarios in which an item fails until its configuration is repaired.
func listRepairScenarios() []Scenario {
	invalid := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "app", "namespace": namespacePlaceholder}, "data": "no map"}
	newDependent := func(phase string) blueprint {
		return newBlueprint(newMockItem("bad", withConfig("phase", phase)), newManifestItem("after", []object{newConfigMap("after")}, withDependencies("bad")))
	}
	return []Scenario{
		{
			Name: "an item with an invalid configuration fails and can be repaired",
			Steps: []steps.Step{
				createTarget("cluster"), apply("it", newApp("1", withConfig("manifests", "no list"))), expectFailure("it", failed),
				install("it", newApp("1")), expectValue("app", "a", "1"), deleteAndWait("it"),
			},
		},
		{
			Name: "an item with a manifest that the API server rejects fails and can be repaired",
			Steps: []steps.Step{
				createTarget("cluster"), apply("it", newBlueprint(newManifestItem("app", []object{invalid}, withTimeout("8s")))), expectFailure("it", failed),
				install("it", newApp("1")), expectValue("app", "a", "1"), deleteAndWait("it"),
			},
		},
		{
			Name: "a failed item stops the items that depend on it", Waits: true,
			Steps: []steps.Step{
				createTarget("cluster"), apply("it", newDependent("Failed")), expectFailure("it", failed), expectNoObject("ConfigMap", "after"),
				install("it", newDependent("Succeeded")), requireObject("ConfigMap", "after"), deleteAndWait("it"),
			},
		},
	}
}

// listEndScenarios returns the scenarios in which Landscaper or a timeout ends a job.
func listEndScenarios() []Scenario {
	// No deployer is responsible for this item.
	orphan := object{"name": "none", "type": "example.org/none", "config": object{"apiVersion": "x/v1", "kind": "X"}}
	return []Scenario{
		{
			Name: "spec.timeout ends an item that waits", Waits: true,
			Steps: []steps.Step{
				createTarget("cluster"), apply("it", newWorkload(newDeployment(1, "unready"), withTimeout("6s"))), expectFailure("it", failed),
				steps.ExpectItem("app", "fails with ERR_TIMEOUT", steps.ItemFails(lsv1alpha1.Error{Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorTimeout}})),
				install("it", newWorkload(newDeployment(0), withTimeout("60s"))), deleteAndWait("it"), expectNoObject("Deployment", "app"),
			},
		},
		{
			Name: "an item without a deployer fails with a pickup timeout",
			Steps: []steps.Step{
				apply("it", blueprint{items: []object{orphan}}), expectFailure("it", failed),
				steps.ExpectItem("none", "fails with PickupTimeout", steps.ItemFails(lsv1alpha1.Error{Reason: lsv1alpha1.PickupTimeoutReason})),
			},
		},
		{
			Name: "an interrupt ends a job that waits", Waits: true,
			Steps: []steps.Step{
				createTarget("cluster"), apply("it", newWorkload(newDeployment(1, "unready"))), expectProgress("app"), requireObject("Deployment", "app"),
				interrupt("it", failed),
				install("it", newWorkload(newDeployment(0))), deleteAndWait("it"), expectNoObject("Deployment", "app"),
			},
		},
	}
}

// newWorkload returns a blueprint with one item, which deploys a Deployment.
func newWorkload(deployment object, options ...option) blueprint {
	return newBlueprint(newManifestItem("app", []object{deployment}, options...))
}

// expectProgress waits until an item is in the phase Progressing.
func expectProgress(name string) steps.Step {
	return steps.ExpectItem(name, "is Progressing", steps.ItemHasPhase(lsv1alpha1.DeployItemPhases.Progressing))
}

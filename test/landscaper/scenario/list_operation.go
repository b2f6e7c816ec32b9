// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/internal/steps"
)

// listOperationScenarios returns the scenarios in which an item runs again, on request or on a schedule.
func listOperationScenarios() []Scenario {
	return []Scenario{
		newItemOperationScenario(lsv1alpha1.TestReconcileOperation, false),
		newItemOperationScenario(lsv1alpha1.ForceReconcileOperation, true),
		{
			Name: "an automatic reconcile by Landscaper restores an object that was edited by hand",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1"), withAutomaticReconcile(3*time.Second)),
				editConfigMap, expectValue("app", "a", "1"), deleteAndWait("it"),
			},
		},
		{
			Name: "a continuous reconcile restores an object that was edited by hand", Waits: true,
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1", withConfig("continuousReconcile", object{"every": "3s"}))),
				editConfigMap, expectValue("app", "a", "1"), deleteAndWait("it"),
			},
		},
	}
}

// newItemOperationScenario returns a scenario in which an operation runs an item again.
func newItemOperationScenario(operation lsv1alpha1.Operation, waits bool) Scenario {
	return Scenario{
		Name: fmt.Sprintf("the operation %s runs an item again", operation), Waits: waits,
		Steps: []steps.Step{
			createTarget("cluster"), install("it", newApp("1")), editConfigMap,
			requestItemOperation("app", operation), expectValue("app", "a", "1"),
			steps.ExpectItem("app", "succeeds and has no operation left", hasCompleted), deleteAndWait("it"),
		},
	}
}

// hasCompleted expects that the last job of an item has succeeded, and that no operation is left.
func hasCompleted(di *lsv1alpha1.DeployItem) error {
	if di.Status.JobID != di.Status.JobIDFinished {
		return fmt.Errorf("the job is %q, but the finished job is %q", di.Status.JobID, di.Status.JobIDFinished)
	}
	if err := steps.ItemHasNoOperation(di); err != nil {
		return err
	}
	return steps.ItemHasPhase(lsv1alpha1.DeployItemPhases.Succeeded)(di)
}

// withAutomaticReconcile makes Landscaper reconcile a successful Installation again and again.
func withAutomaticReconcile(interval time.Duration) change {
	return func(in *lsv1alpha1.Installation) {
		in.Spec.AutomaticReconcile = &lsv1alpha1.AutomaticReconcile{
			SucceededReconcile: &lsv1alpha1.SucceededReconcile{Interval: &lsv1alpha1.Duration{Duration: interval}},
		}
	}
}

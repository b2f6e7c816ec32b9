// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// This example shows one reconcile of an item for which Landscaper has requested a job.
func Example() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	item := &lsv1alpha1.DeployItem{}
	item.Generation = 1
	item.Status.JobID = "job-1"

	d := contract.Evaluate(item, contract.Options{Now: now})
	fmt.Println(d.Revision, d.Action, "due:", d.Due, "because:", d.Reason)

	contract.StartRun(item, d, contract.StartInfo{Now: now, Deployer: lsv1alpha1.DeployerInformation{Name: "mine"}})
	fmt.Println(item.Status.Phase, "generation", item.Status.ObservedGeneration) // persist this, then call the deployer

	o := contract.DetermineOutcome(contract.CallResult{
		Revision: d.Revision, Action: d.Action, Now: now,
		Phase: contract.InitialPhase(d.Revision, d.Action), // the deployer did not change the phase, so it is done
	})
	contract.ApplyOutcome(item, d, o, now, now)
	fmt.Println(item.Status.Phase, "finished", item.Status.JobIDFinished) // persist this, because the job has ended

	// Output:
	// job-id reconcile due: true because: NewJob
	// Init generation 1
	// Succeeded finished job-1
}

// DetermineOutcome finds the codes of an error even if other errors wrap it. The codes determine whether the call is
// retried.
func ExampleDetermineOutcome() {
	bad := &contract.CodedError{Reason: "BadConfig", Message: "spec.config: no host", Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}}
	o := contract.DetermineOutcome(contract.CallResult{
		Revision: contract.RevisionJobID, Action: contract.ActionReconcile, Phase: "Init",
		Err: fmt.Errorf("deploy: %w", bad),
	})
	fmt.Println(o.Phase, o.Final, o.Err.Reason, o.Err.Message)
	// Output: Failed true BadConfig deploy: spec.config: no host
}

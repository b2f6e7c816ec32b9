// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// One pass over an item whose Landscaper has handed out a job.
func Example() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	item := &lsv1alpha1.DeployItem{}
	item.Generation = 1
	item.Status.JobID = "job-1"

	d := contract.Evaluate(item, contract.Options{Now: now})
	fmt.Println(d.Revision, d.Action, "due:", d.Due, "because:", d.Reason)

	contract.Start(item, d, contract.StartInfo{Now: now, Deployer: lsv1alpha1.DeployerInformation{Name: "mine"}})
	fmt.Println(item.Status.Phase, "generation", item.Status.ObservedGeneration) // persist this, then call the deployer

	o := contract.Judge(contract.Return{
		Revision: d.Revision, Action: d.Action, Now: now,
		Phase: contract.HandedPhase(d.Revision, d.Action), // what the deployer was handed, and left alone: done
	})
	contract.Apply(item, d, o, now, now)
	fmt.Println(item.Status.Phase, "finished", item.Status.JobIDFinished) // persist this: the job ended

	// Output:
	// job-id reconcile due: true because: NewJob
	// Init generation 1
	// Succeeded finished job-1
}

// The codes of an error are found wherever they are, and decide whether a retry makes sense.
func ExampleJudge() {
	bad := &contract.Fault{Reason: "BadConfig", Message: "spec.config: no host", Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}}
	o := contract.Judge(contract.Return{
		Revision: contract.RevisionJobID, Action: contract.ActionReconcile, Phase: "Init",
		Err: fmt.Errorf("deploy: %w", bad),
	})
	fmt.Println(o.Phase, o.Final, o.Err.Reason, o.Err.Message)
	// Output: Failed true BadConfig deploy: spec.config: no host
}

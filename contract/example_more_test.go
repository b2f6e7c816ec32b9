// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// Evaluate returns the action for a deploy item, whether a run is due, and the reason.
func ExampleEvaluate() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	item := &lsv1alpha1.DeployItem{}
	show := func() {
		d := contract.Evaluate(item, contract.Options{Now: now})
		fmt.Printf("%-10s due %-5t action %-9s reason %s\n", d.Revision, d.Due, d.Action, d.Reason)
	}

	item.Generation = 1
	show() // without a job ID, the item follows the annotation revision, in which a new generation is enough
	item.Status.JobID = "job-1"
	show() // Landscaper requests a job
	item.Status.JobIDFinished, item.Status.Phase, item.Status.ObservedGeneration = "job-1", lsv1alpha1.DeployItemPhases.Succeeded, 1
	show() // the job is finished
	// Output:
	// annotation due true  action reconcile reason NotStarted
	// job-id     due true  action reconcile reason NewJob
	// job-id     due false action reconcile reason Finished
}

// ErrorCodes finds the codes of an error even if other errors wrap it. Some codes make a retry pointless.
func ExampleErrorCodes() {
	fault := &contract.CodedError{Message: "no such region", Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}}
	for _, err := range []error{errors.New("connection refused"), fmt.Errorf("create disk: %w", fault)} {
		codes := contract.ErrorCodes(err)
		fmt.Println(err, codes, contract.HasUnrecoverableCode(codes))
	}
	// Output:
	// connection refused [] false
	// create disk: no such region [ERR_CONFIGURATION_PROBLEM] true
}

// NewError returns an error in the form in which a deploy item stores it.
func ExampleNewError() {
	err := &contract.CodedError{Operation: "CreateDisk", Reason: "QuotaExceeded", Message: "the quota is 100 GB"}
	stored := contract.NewError(err, "Reconcile", "ReconcileFailed", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	fmt.Println(stored.Operation, stored.Reason, stored.Message, stored.LastUpdateTime.UTC())
	// Output: CreateDisk QuotaExceeded the quota is 100 GB 2026-01-02 03:04:05 +0000 UTC
}

// The field spec.timeout limits the duration of a run.
func ExampleTimeout() {
	item := &lsv1alpha1.DeployItem{}
	fmt.Println(contract.Timeout(item))
	item.Spec.Timeout = &lsv1alpha1.Duration{Duration: 30 * time.Second}
	fmt.Println(contract.Timeout(item))
	item.Spec.Timeout = &lsv1alpha1.Duration{} // "none"
	fmt.Println(contract.Timeout(item))
	// Output:
	// 10m0s true <nil>
	// 30s true <nil>
	// 0s false <nil>
}

// DetectRevision returns the revision of the contract that a deploy item follows.
func ExampleDetectRevision() {
	item := &lsv1alpha1.DeployItem{}
	fmt.Println(contract.DetectRevision(item))
	item.Status.JobID = "job-1"
	fmt.Println(contract.DetectRevision(item))
	// Output:
	// annotation
	// job-id
}

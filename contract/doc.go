// SPDX-License-Identifier: Apache-2.0

// Package contract implements the contract between Landscaper and a deployer as pure functions on a DeployItem. The
// functions need no client and no clock: the current time is a parameter. They do no I/O and no logging.
//
// A reconcile of an item consists of four calls. The caller implements everything between these calls:
//
//	d := contract.Evaluate(item, contract.Options{Now: now})           // what has to be done?
//	contract.StartRun(item, d, contract.StartInfo{Now: now, …})           // if d.Due && d.New: the status of a started run; persist it
//	o := contract.DetermineOutcome(contract.CallResult{Action: d.Action, …})      // what does the deployer's result mean?
//	contract.ApplyOutcome(item, d, o, now, started)                           // the status of the outcome, all fields together; persist it
//
// The contract has two revisions, and [DetectRevision] chooses one for each item. The annotation revision uses the
// operation and reconcile-time annotations and compares the generation with observedGeneration. The job-ID revision
// compares status.jobID with status.jobIDFinished. Every function that writes follows the revision and changes only the
// fields that a deployer may write under this revision. [RevertForbiddenChanges] enforces this: it undoes all other
// changes before a status is stored.
//
// Times are written in whole seconds, as the API server stores them, so a status in memory equals the stored status.
//
// docs/contract.md explains the rules and lists them in tables.
package contract

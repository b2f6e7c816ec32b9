// SPDX-License-Identifier: Apache-2.0

// Package contract implements the contract between Landscaper and a deployer as pure functions on a DeployItem. They
// use no client, clock (now is a parameter), I/O or logging.
//
// A reconcile of an item consists of four calls. Everything between them is up to the caller:
//
//	d := contract.Evaluate(item, contract.Options{Now: now})       // what has to be done?
//	contract.Start(item, d, contract.StartInfo{Now: now, …})       // if d.Due && d.New: the status of a started run; persist it
//	o := contract.Judge(contract.Return{Action: d.Action, …})      // what does the deployer's result mean?
//	contract.Apply(item, d, o, now, started)                       // the status of the outcome, all fields together; persist it
//
// The contract has two revisions, which [Detect] chooses per item: the annotation revision (operation and
// reconcile-time annotations, generation against observedGeneration) and the job-ID revision (status.jobID against
// status.jobIDFinished). Every function that writes follows the revision and changes only the fields that this revision
// may write. [Mask] enforces this once more before a status is stored.
//
// Times are written in whole seconds, as the API server stores them, so a status in memory equals the stored one.
//
// docs/contract.md explains the rules and lists them in tables.
package contract

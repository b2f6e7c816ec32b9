// SPDX-License-Identifier: Apache-2.0

// Package contract is what Landscaper and a deployer promise each other, as pure functions on a DeployItem:
// no client, no clock (now is a parameter), no I/O, no logging.
//
// A pass over an item is four calls, and everything between them belongs to the caller:
//
//	d := contract.Evaluate(item, contract.Options{Now: now})       // what is wanted of this item?
//	contract.Start(item, d, contract.StartInfo{Now: now, …})       // d.Due && d.New: status of a started run; persist it
//	o := contract.Judge(contract.Return{Action: d.Action, …})      // what does the deployer's return mean?
//	contract.Apply(item, d, o, now, started)                       // status of the outcome, all fields together; persist it
//
// There are two revisions of the contract, chosen per item by [Detect]: the annotation revision (operation and
// reconcile-time annotations, generation against observedGeneration) and the job-ID revision (status.jobID against
// status.jobIDFinished). Every function that writes takes the revision and touches only the fields of that
// revision's closed list; [Mask] is the last line of defence and asserts it.
//
// Times are written in whole seconds, as the API server stores them, so a status in memory equals the stored one.
//
// The rules in plain words, with tables, stand in docs/contract.md.
package contract

// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// row is a row of the table: a deploy item, an Installation or an Execution.
type row struct {
	order string // sort key of the row in the table
	name  string
	phase string
	job   string
	hooks int    // hook calls so far, or noHooks
	event string // the last event
}

// noHooks is the number of hook calls in the rows of Installations and Executions, which have no hooks.
const noHooks = -1

// rowOf returns the row for an object and the key of the row. The key of a deploy item is its name. The key of any
// other object consists of its kind and its name.
func rowOf(obj any) (key string, now row, ok bool) {
	switch o := obj.(type) {
	case *lsv1alpha1.DeployItem:
		return o.Name, itemRow(o), true
	case *lsv1alpha1.Installation:
		s := o.Status
		now = row{order: o.Name + "/0", name: "Installation " + o.Name, phase: phaseText(s.InstallationPhase), job: jobName(s.JobID, s.JobIDFinished == s.JobID), hooks: noHooks}
		if s.InstallationPhase.IsFailed() {
			now.event = errorText(s.LastError)
		}
	case *lsv1alpha1.Execution:
		s := o.Status
		now = row{order: o.Name + "/1", name: "Execution " + o.Name, phase: phaseText(s.ExecutionPhase), job: jobName(s.JobID, s.JobIDFinished == s.JobID), hooks: noHooks}
		if s.ExecutionPhase.IsFailed() {
			now.event = errorText(s.LastError)
		}
	}
	return now.name, now, now.name != ""
}

// itemRow returns the row for a deploy item. If Landscaper has created the item, the row contains the name in the
// blueprint, and is below the row of the Execution.
func itemRow(di *lsv1alpha1.DeployItem) row {
	r := row{order: di.Name, name: di.Name, phase: phaseText(di.Status.Phase), job: jobText(di), event: errorText(di.Status.LastError)}
	if name := di.Labels[lsv1alpha1.ExecutionManagedNameLabel]; name != "" {
		r.order, r.name = di.Labels[lsv1alpha1.ExecutionManagedByLabel]+"/2/"+name+"/"+di.Name, "DeployItem "+name
	}
	return r
}

// phaseText returns a phase as text. The text for an empty phase is "(new)".
func phaseText[T ~string](phase T) string { return cmp.Or(string(phase), "(new)") }

// errorText returns an error as one line, or "" if there is none.
func errorText(e *lsv1alpha1.Error) string {
	if e == nil {
		return ""
	}
	return contract.OneLine(e.Reason+": "+e.Message, maxEvent)
}

// jobText describes the last requested run of an item, and whether this run is done.
func jobText(di *lsv1alpha1.DeployItem) string {
	if text, ok := jobTexts[contract.Detect(di)]; ok {
		return text(di)
	}
	return ""
}

// jobTexts contains a function for each revision of the contract. One function describes a run by the job ID, and the
// other one by the generation of the item.
var jobTexts = map[contract.Revision]func(*lsv1alpha1.DeployItem) string{
	contract.RevisionJobID: func(di *lsv1alpha1.DeployItem) string {
		return jobName(di.Status.JobID, di.Status.JobID == di.Status.JobIDFinished)
	},
	contract.RevisionAnnotation: func(di *lsv1alpha1.DeployItem) string {
		done := di.Status.ObservedGeneration == di.Generation && contract.IsFinal(di.Status.Phase)
		return jobName(fmt.Sprintf("generation %d", di.Generation), done)
	},
}

// jobName returns the beginning of the ID of a job. If the job is done, jobName adds "done".
func jobName(id string, done bool) string {
	const enough, long = 8, 36 // the length of the shown prefix, and the length of a UUID
	if len(id) >= long {
		id = id[:enough]
	}
	switch {
	case id == "":
		return "no job yet"
	case done:
		return id + ", done"
	}
	return id
}

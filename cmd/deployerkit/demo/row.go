// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// row is the table row of one deploy item, Installation or Execution.
type row struct {
	order string // sort key in the table
	name  string
	phase string
	job   string
	hooks int    // hook calls so far; noHooks if there are none to count
	event string // the last event
}

// noHooks marks the rows of Landscaper's own objects.
const noHooks = -1

// rowOf returns the row of an object and its key in the state: the name of a deploy item, and kind and name of other
// objects.
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

// itemRow returns the row of a deploy item. An item that Landscaper created has its name in the blueprint, and is shown
// below its Execution.
func itemRow(di *lsv1alpha1.DeployItem) row {
	r := row{order: di.Name, name: di.Name, phase: phaseText(di.Status.Phase), job: jobText(di), event: errorText(di.Status.LastError)}
	if name := di.Labels[lsv1alpha1.ExecutionManagedNameLabel]; name != "" {
		r.order, r.name = di.Labels[lsv1alpha1.ExecutionManagedByLabel]+"/2/"+name+"/"+di.Name, "DeployItem "+name
	}
	return r
}

// phaseText returns a phase, or "(new)" if there is none yet.
func phaseText[T ~string](phase T) string { return cmp.Or(string(phase), "(new)") }

// errorText returns an error as one line, or "" if there is none.
func errorText(e *lsv1alpha1.Error) string {
	if e == nil {
		return ""
	}
	return contract.OneLine(e.Reason+": "+e.Message, maxEvent)
}

// jobText returns the last request for the item, and whether it is done.
func jobText(di *lsv1alpha1.DeployItem) string {
	if text, ok := jobTexts[contract.Detect(di)]; ok {
		return text(di)
	}
	return ""
}

// jobTexts returns the job or, without job IDs, the generation.
var jobTexts = map[contract.Revision]func(*lsv1alpha1.DeployItem) string{
	contract.RevisionJobID: func(di *lsv1alpha1.DeployItem) string {
		return jobName(di.Status.JobID, di.Status.JobID == di.Status.JobIDFinished)
	},
	contract.RevisionAnnotation: func(di *lsv1alpha1.DeployItem) string {
		done := di.Status.ObservedGeneration == di.Generation && contract.IsFinal(di.Status.Phase)
		return jobName(fmt.Sprintf("generation %d", di.Generation), done)
	},
}

// jobName returns the first characters of a job's ID, and whether it is done.
func jobName(id string, done bool) string {
	const enough, long = 8, 36 // the lengths of the prefix and of a UUID
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

// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// row is what is shown of one deploy item, Installation or Execution.
type row struct {
	order string // where it stands in the table
	name  string
	phase string
	job   string
	hooks int    // hook calls so far; noHooks if there cannot be any
	event string // what happened last
}

// noHooks marks the rows of objects that are Landscaper's own.
const noHooks = -1

// rowOf returns the row of an object, and its key in the state: the name of a deploy item, kind and name of others.
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

// itemRow returns the row of a deploy item. One that Landscaper made has the name that its blueprint calls it, and
// stands below its Execution.
func itemRow(di *lsv1alpha1.DeployItem) row {
	r := row{order: di.Name, name: di.Name, phase: phaseText(di.Status.Phase), job: jobText(di), event: errorText(di.Status.LastError)}
	if name := di.Labels[lsv1alpha1.ExecutionManagedNameLabel]; name != "" {
		r.order, r.name = di.Labels[lsv1alpha1.ExecutionManagedByLabel]+"/2/"+name+"/"+di.Name, "DeployItem "+name
	}
	return r
}

// phaseText is a phase, or that there is none yet.
func phaseText[T ~string](phase T) string { return cmp.Or(string(phase), "(new)") }

// errorText is an error as one line; "" if there is none.
func errorText(e *lsv1alpha1.Error) string {
	if e == nil {
		return ""
	}
	return contract.OneLine(e.Reason+": "+e.Message, maxEvent)
}

// jobText names what the item was last asked to do, and says whether it is done.
func jobText(di *lsv1alpha1.DeployItem) string {
	if text, ok := jobTexts[contract.Detect(di)]; ok {
		return text(di)
	}
	return ""
}

// jobTexts names the job, or without job IDs the generation.
var jobTexts = map[contract.Revision]func(*lsv1alpha1.DeployItem) string{
	contract.RevisionJobID: func(di *lsv1alpha1.DeployItem) string {
		return jobName(di.Status.JobID, di.Status.JobID == di.Status.JobIDFinished)
	},
	contract.RevisionAnnotation: func(di *lsv1alpha1.DeployItem) string {
		done := di.Status.ObservedGeneration == di.Generation && contract.IsFinal(di.Status.Phase)
		return jobName(fmt.Sprintf("generation %d", di.Generation), done)
	},
}

// jobName names a job by the first characters of its ID, and says whether it is done.
func jobName(id string, done bool) string {
	const enough, long = 8, 36 // of a UUID
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
